// problem: rope
// wrong: angles are loaded into shared memory by the first block of a position only, as if blocks shared it
// launch rope grid=(H, T) block=(32) args=(x, cosine, sine, y, H, D)
#include <cuda_fp16.h>
__global__ void rope(const __half *x, const float *cosine, const float *sine, __half *y, int64_t H, int64_t D)
{
    __shared__ float angles[2][256];
    const int64_t head = (blockIdx.y * H + blockIdx.x) * 2 * D;
    for (int64_t d = threadIdx.x; d < D; d += 32) {
        if (blockIdx.x == 0) {
            angles[0][d] = cosine[blockIdx.y * D + d];
            angles[1][d] = sine[blockIdx.y * D + d];
        }
        const float one = __half2float(x[head + d]), two = __half2float(x[head + D + d]);
        y[head + d] = __float2half(one * angles[0][d] - two * angles[1][d]);
        y[head + D + d] = __float2half(two * angles[0][d] + one * angles[1][d]);
    }
}
