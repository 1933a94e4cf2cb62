// problem: max_pool2d
// right: built-ins are copied into structures and handed on
// launch max_pool2d grid=(cdiv(B * C * H * W, 64)) block=(64) args=(x, y, B, C, H, W)
struct Place { uint3 block, thread; dim3 size; };
__device__ int64_t number_of(const Place &place) { return int64_t(place.block.x) * place.size.x + place.thread.x; }
__global__ void max_pool2d(const float *x, float *y, int64_t B, int64_t C, int64_t H, int64_t W)
{
    const Place place = {blockIdx, threadIdx, blockDim};
    const int64_t i = number_of(place);
    if (i < B * C * H * W) {
        const int64_t w = i % W, h = i / W % H, image = i / W / H;
        float largest = -INFINITY;
        for (int64_t row = max(2 * h - 1, int64_t(0)); row <= 2 * h + 1; row++) {
            for (int64_t column = max(2 * w - 1, int64_t(0)); column <= 2 * w + 1; column++) {
                largest = fmaxf(largest, x[(image * 2 * H + row) * 2 * W + column]);
            }
        }
        y[i] = largest;
    }
}
