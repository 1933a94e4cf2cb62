// A thread four numbers of a row, which one scale belongs to.
// launch fp8_block_dequantise grid=(cdiv(B * 4, 64), A * 16) block=(64) args=(x, scale, y, B)
#include <cuda_bf16.h>
#include <cuda_fp8.h>

extern "C" __global__ void fp8_block_dequantise(const __nv_fp8x4_e4m3 *__restrict__ x,
                                                const float *__restrict__ scale, __nv_bfloat162 *__restrict__ y,
                                                long long B)
{
    const long long four = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (four < B * 4) {
        const float4 numbers = static_cast<float4>(x[row * B * 4 + four]);
        const float factor = scale[row / 16 * B + four / 4];
        __nv_bfloat162 *to = y + (row * B * 4 + four) * 2;
        to[0] = __floats2bfloat162_rn(numbers.x * factor, numbers.y * factor);
        to[1] = __floats2bfloat162_rn(numbers.z * factor, numbers.w * factor);
    }
}
