// A block a row: its norm, then its numbers.
// launch e5m2_gradient grid=(M) block=(128) args=(x, y, N, most, factor)
#include <cuda_fp8.h>

extern "C" __global__ void e5m2_gradient(const float *__restrict__ x, __nv_fp8_e5m2 *__restrict__ y, long long N,
                                         float most, float factor)
{
    __shared__ float parts[4];
    const long long start = blockIdx.x * N;
    float squares = 0.0f;
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        squares += x[start + n] * x[start + n];
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = squares;
    }
    __syncthreads();
    const float norm = sqrtf((parts[0] + parts[1]) + (parts[2] + parts[3]));
    const float scale = fminf(most / norm, 1.0f) * factor;
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        y[start + n] = __nv_fp8_e5m2(x[start + n] * scale);
    }
}
