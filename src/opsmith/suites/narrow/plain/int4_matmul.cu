// A warp an entry of y: a lane takes every 32nd number, whose nibble is the low one where the number is even.
// launch int4_matmul grid=(cdiv(N, 8), M) block=(32, 8) args=(x, weight, scale, y, N, G)
#include <cuda_fp16.h>

extern "C" __global__ void int4_matmul(const __half *__restrict__ x, const unsigned char *__restrict__ weight,
                                       const __half *__restrict__ scale, float *__restrict__ y, long long N,
                                       long long G)
{
    const long long m = blockIdx.y, n = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
    const int lane = threadIdx.x;
    float sum = 0.0f;
    if (n < N) {
        for (long long g = 0; g < G; g++) {
            const unsigned char pair = weight[(n * G + g) * 16 + lane / 2];
            const int number = static_cast<signed char>(lane % 2 ? pair : pair << 4) >> 4;
            sum += __half2float(x[(m * G + g) * 32 + lane]) * number * __half2float(scale[n * G + g]);
        }
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    }
    if (n < N && lane == 0) {
        y[m * N + n] = sum;
    }
}
