// A thread a byte: both of its numbers are written at once.
// launch int4_dequantise grid=(cdiv(M * G * 16, 256)) block=(256) args=(weight, scale, y, M, G)
#include <cuda_fp16.h>

extern "C" __global__ void int4_dequantise(const unsigned char *__restrict__ weight, const float *__restrict__ scale,
                                           __half *__restrict__ y, long long M, long long G)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < M * G * 16) {
        const unsigned char pair = weight[i];
        const int low = static_cast<signed char>(pair << 4) >> 4, high = static_cast<signed char>(pair) >> 4;
        const float factor = scale[i / 16];
        reinterpret_cast<__half2 *>(y)[i] = __floats2half2_rn(low * factor, high * factor);
    }
}
