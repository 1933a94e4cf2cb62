// problem: max_pool2d
// wrong: reads the entry left of the image's first one, and then does not use it
// launch max_pool2d grid=(B * C, H) block=(32) args=(x, y, H, W)
__global__ void max_pool2d(const float *x, float *y, int64_t H, int64_t W)
{
    const float *image = x + blockIdx.x * 4 * H * W;
    for (int64_t w = threadIdx.x; w < W; w += 32) {
        float largest = -INFINITY;
        for (int64_t row = 2 * int64_t(blockIdx.y) - 1; row <= 2 * int64_t(blockIdx.y) + 1; row++) {
            for (int64_t column = 2 * w - 1; column <= 2 * w + 1; column++) {
                const float value = image[row * 2 * W + column];
                largest = row >= 0 && column >= 0 ? fmaxf(largest, value) : largest;
            }
        }
        y[(blockIdx.x * H + blockIdx.y) * W + w] = largest;
    }
}
