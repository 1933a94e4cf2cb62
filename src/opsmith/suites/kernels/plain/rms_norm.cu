// A block per row, in bf16 with fp32 inside. Rows of even length are read and written in pairs.
// launch rms_norm grid=(M) block=(128) args=(x, weight, y, N, eps)
#include <cuda_bf16.h>

constexpr int WARPS = 4;

__device__ float sum_block(float value)
{
    __shared__ float sums[WARPS];
    for (int offset = 16; offset > 0; offset >>= 1) {
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    }
    if (threadIdx.x % 32 == 0) {
        sums[threadIdx.x / 32] = value;
    }
    __syncthreads();
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

__device__ void scale_pairs(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, long long N,
                            float eps)
{
    const __nv_bfloat162 *x2 = reinterpret_cast<const __nv_bfloat162 *>(x);
    const __nv_bfloat162 *weight2 = reinterpret_cast<const __nv_bfloat162 *>(weight);
    __nv_bfloat162 *y2 = reinterpret_cast<__nv_bfloat162 *>(y);
    float squares = 0.0f;
    for (long long n = threadIdx.x; n < N / 2; n += blockDim.x) {
        const float2 pair = __bfloat1622float2(x2[n]);
        squares += pair.x * pair.x + pair.y * pair.y;
    }
    const float scale = rsqrtf(sum_block(squares) / N + eps);
    for (long long n = threadIdx.x; n < N / 2; n += blockDim.x) {
        const float2 pair = __bfloat1622float2(x2[n]), factor = __bfloat1622float2(weight2[n]);
        y2[n] = __floats2bfloat162_rn(pair.x * scale * factor.x, pair.y * scale * factor.y);
    }
}

__device__ void scale_singles(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, long long N,
                              float eps)
{
    float squares = 0.0f;
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        const float value = __bfloat162float(x[n]);
        squares += value * value;
    }
    const float scale = rsqrtf(sum_block(squares) / N + eps);
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        y[n] = __float2bfloat16(__bfloat162float(x[n]) * scale * __bfloat162float(weight[n]));
    }
}

extern "C" __global__ void rms_norm(const __nv_bfloat16 *__restrict__ x, const __nv_bfloat16 *__restrict__ weight,
                                    __nv_bfloat16 *__restrict__ y, long long N, float eps)
{
    const long long start = blockIdx.x * N;
    if (N % 2 == 0) {
        scale_pairs(x + start, weight, y + start, N, eps);
    } else {
        scale_singles(x + start, weight, y + start, N, eps);
    }
}
