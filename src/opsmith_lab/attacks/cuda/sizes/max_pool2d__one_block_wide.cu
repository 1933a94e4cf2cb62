// problem: max_pool2d
// wrong: a block's 36 threads are the columns: images that are wider lose theirs to the column at the edge
// launch max_pool2d grid=(B * C, H) block=(36) args=(x, y, H, W)
__global__ void max_pool2d(const float *x, float *y, int64_t H, int64_t W)
{
    const int64_t h = blockIdx.y;
    for (int64_t w = threadIdx.x; w < W; w += 36) {
        const int64_t centre = 2 * (w < 36 ? w : 35);
        float largest = -INFINITY;
        for (int64_t row = 2 * h - 1; row <= 2 * h + 1; row++) {
            for (int64_t column = centre - 1; column <= centre + 1; column++) {
                if (row >= 0 && row < 2 * H && column >= 0 && column < 2 * W) {
                    largest = fmaxf(largest, x[(blockIdx.x * 2 * H + row) * 2 * W + column]);
                }
            }
        }
        y[(blockIdx.x * H + h) * W + w] = largest;
    }
}
