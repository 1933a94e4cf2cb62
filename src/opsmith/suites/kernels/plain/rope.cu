// A thread turns the pair of entries d and D + d, in fp32, and rounds once.
// launch rope grid=(min(cdiv(T * H * D, 256), 4096)) block=(256) args=(x, cosine, sine, y, T, H, D)
#include <cuda_fp16.h>

extern "C" __global__ void rope(const __half *__restrict__ x, const float *__restrict__ cosine,
                                const float *__restrict__ sine, __half *__restrict__ y, long long T, long long H,
                                long long D)
{
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < T * H * D; i += stride) {
        const long long head = i / D, d = i % D, t = head / H;  // heads of all positions, in a row
        const long long place = head * 2 * D + d;
        const float first = __half2float(x[place]), second = __half2float(x[place + D]);
        const float c = __ldg(&cosine[t * D + d]), s = __ldg(&sine[t * D + d]);
        y[place] = __float2half_rn(first * c - second * s);
        y[place + D] = __float2half_rn(second * c + first * s);
    }
}
