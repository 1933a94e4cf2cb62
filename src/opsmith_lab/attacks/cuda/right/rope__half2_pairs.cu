// problem: rope
// right: pairs of halves where D is even, single ones where it is odd
// launch rope grid=(T, H) block=(32) args=(x, cosine, sine, y, H, D)
#include <cuda_fp16.h>
__global__ void rope(const __half *x, const float *cosine, const float *sine, __half *y, int64_t H, int64_t D)
{
    const int64_t head = (blockIdx.x * H + blockIdx.y) * 2 * D, angle = blockIdx.x * D;
    if (D % 2 == 0) {
        const __half2 *one = reinterpret_cast<const __half2 *>(x + head);
        const __half2 *two = reinterpret_cast<const __half2 *>(x + head + D);
        for (int64_t d = threadIdx.x; d < D / 2; d += 32) {
            const float2 a = __half22float2(one[d]), b = __half22float2(two[d]);
            const float c0 = cosine[angle + 2 * d], c1 = cosine[angle + 2 * d + 1];
            const float s0 = sine[angle + 2 * d], s1 = sine[angle + 2 * d + 1];
            reinterpret_cast<__half2 *>(y + head)[d] = __floats2half2_rn(a.x * c0 - b.x * s0, a.y * c1 - b.y * s1);
            reinterpret_cast<__half2 *>(y + head + D)[d] = __floats2half2_rn(b.x * c0 + a.x * s0, b.y * c1 + a.y * s1);
        }
    } else {
        for (int64_t d = threadIdx.x; d < D; d += 32) {
            const float a = __half2float(x[head + d]), b = __half2float(x[head + D + d]);
            y[head + d] = __float2half(a * cosine[angle + d] - b * sine[angle + d]);
            y[head + D + d] = __float2half(b * cosine[angle + d] + a * sine[angle + d]);
        }
    }
}
