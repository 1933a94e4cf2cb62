// fp16 tiles in shared memory, sums in fp32: a block computes 32 x 32 entries of a batch, a thread a column of four.
// launch batched_gemm grid=(cdiv(M, 32), cdiv(N, 32), min(B, 65535)) block=(32, 8) args=(a, b, y, B, M, N, K)
#include <cuda_fp16.h>

constexpr int TILE = 32, STEP = 8, PART = TILE / STEP;

// The tile of a matrix of that many rows and columns, with zeros outside of it.
__device__ void load_tile(half (&tile)[TILE][TILE], const half *__restrict__ matrix, long long row0, long long column0,
                          long long rows, long long columns)
{
    const long long column = column0 + threadIdx.x;
    for (int i = threadIdx.y; i < TILE; i += STEP) {
        const bool is_inside = row0 + i < rows && column < columns;
        tile[i][threadIdx.x] = is_inside ? matrix[(row0 + i) * columns + column] : __float2half(0.0f);
    }
}

extern "C" __global__ void batched_gemm(const half *__restrict__ a, const half *__restrict__ b, half *__restrict__ y,
                                        long long B, long long M, long long N, long long K)
{
    __shared__ half a_tile[TILE][TILE], b_tile[TILE][TILE];
    const long long m0 = static_cast<long long>(blockIdx.x) * TILE, n0 = static_cast<long long>(blockIdx.y) * TILE;

    for (long long batch = blockIdx.z; batch < B; batch += gridDim.z) {
        float sums[PART] = {0.0f, 0.0f, 0.0f, 0.0f};
        for (long long k0 = 0; k0 < K; k0 += TILE) {
            load_tile(a_tile, a + batch * M * K, m0, k0, M, K);
            load_tile(b_tile, b + batch * K * N, k0, n0, K, N);
            __syncthreads();
            for (int k = 0; k < TILE; k++) {
                const float factor = __half2float(b_tile[k][threadIdx.x]);
                for (int i = 0; i < PART; i++) {
                    sums[i] += __half2float(a_tile[threadIdx.y + i * STEP][k]) * factor;
                }
            }
            __syncthreads();
        }
        const long long n = n0 + threadIdx.x;
        for (int i = 0; i < PART; i++) {
            const long long m = m0 + threadIdx.y + i * STEP;
            if (m < M && n < N) {
                y[(batch * M + m) * N + n] = __float2half_rn(sums[i]);
            }
        }
    }
}
