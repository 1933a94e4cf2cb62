// A block a row: its largest magnitude, then its numbers.
// launch fp8_quantise grid=(M) block=(128) args=(x, y, scale, N, least)
#include <cuda_fp8.h>

extern "C" __global__ void fp8_quantise(const float *__restrict__ x, __nv_fp8_e4m3 *__restrict__ y,
                                        float *__restrict__ scale, long long N, float least)
{
    __shared__ float parts[4];
    const long long start = blockIdx.x * N;
    float largest = least;
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        largest = fmaxf(largest, fabsf(x[start + n]));
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = largest;
    }
    __syncthreads();
    const float factor = fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3])) / 448.0f;
    if (threadIdx.x == 0) {
        scale[blockIdx.x] = factor;
    }
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        y[start + n] = __nv_fp8_e4m3(x[start + n] / factor);
    }
}
