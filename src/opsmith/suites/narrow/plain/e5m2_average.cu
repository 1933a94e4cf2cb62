// A thread a number of all workers.
// launch e5m2_average grid=(cdiv(N, 128)) block=(128) args=(gradients, y, W, N, factor)
#include <cuda_bf16.h>
#include <cuda_fp8.h>

extern "C" __global__ void e5m2_average(const __nv_fp8_e5m2 *__restrict__ gradients, __nv_bfloat16 *__restrict__ y,
                                        long long W, long long N, float factor)
{
    const long long n = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (n < N) {
        float sum = 0.0f;
        for (long long w = 0; w < W; w++) {
            sum += static_cast<float>(gradients[w * N + n]);
        }
        y[n] = __float2bfloat16(sum / (W * factor));
    }
}
