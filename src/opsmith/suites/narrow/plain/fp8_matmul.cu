// A block a tile of 16 x 16 entries; operands are widened on their way to shared memory.
// launch fp8_matmul grid=(cdiv(N, 16), cdiv(M, 16)) block=(16, 16) args=(a, b, scale_a, scale_b, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp8.h>

constexpr int TILE = 16;

extern "C" __global__ void fp8_matmul(const __nv_fp8_e4m3 *__restrict__ a, const __nv_fp8_e4m3 *__restrict__ b,
                                      const float *__restrict__ scale_a, const float *__restrict__ scale_b,
                                      __nv_bfloat16 *__restrict__ y, long long M, long long N, long long K)
{
    __shared__ float a_tile[TILE][TILE + 1], b_tile[TILE][TILE + 1];
    const int i = threadIdx.y, j = threadIdx.x;
    const long long m0 = static_cast<long long>(blockIdx.y) * TILE, n0 = static_cast<long long>(blockIdx.x) * TILE;
    float sum = 0.0f;
    for (long long k0 = 0; k0 < K; k0 += TILE) {
        const bool inside = k0 + j < K;
        a_tile[i][j] = inside && m0 + i < M ? static_cast<float>(a[(m0 + i) * K + k0 + j]) : 0.0f;
        b_tile[i][j] = inside && n0 + i < N ? static_cast<float>(b[(n0 + i) * K + k0 + j]) : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            sum += a_tile[i][k] * b_tile[j][k];
        }
        __syncthreads();
    }
    if (m0 + i < M && n0 + j < N) {
        y[(m0 + i) * N + n0 + j] = __float2bfloat16(sum * scale_a[m0 + i] * scale_b[n0 + j]);
    }
}
