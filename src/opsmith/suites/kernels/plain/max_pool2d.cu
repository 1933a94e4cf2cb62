// A thread per output, in blocks of 8 x 32 pixels; the planes of batch and channel are along z.
// launch max_pool2d grid=(cdiv(W, 32), cdiv(H, 8), min(B * C, 65535)) block=(32, 8) args=(x, y, B, C, H, W)
#include <math_constants.h>

extern "C" __global__ void max_pool2d(const float *__restrict__ x, float *__restrict__ y, long long B, long long C,
                                      long long H, long long W)
{
    const long long w = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long h = static_cast<long long>(blockIdx.y) * blockDim.y + threadIdx.y;
    if (h >= H || w >= W) {
        return;
    }
    for (long long plane = blockIdx.z; plane < B * C; plane += gridDim.z) {
        const float *image = x + plane * 4 * H * W;
        float largest = -CUDART_INF_F;
        for (long long row = max(2 * h - 1, 0ll); row <= 2 * h + 1; row++) {
            for (long long column = max(2 * w - 1, 0ll); column <= 2 * w + 1; column++) {
                largest = fmaxf(largest, __ldg(&image[row * 2 * W + column]));
            }
        }
        y[(plane * H + h) * W + w] = largest;
    }
}
