// A block computes 32 x 32 entries, a thread four of a column; both matrices are read along their rows.
// launch gemm_at grid=(cdiv(M, 32), cdiv(N, 32)) block=(32, 8) args=(a, b, y, M, N, K)

constexpr int TILE = 32;
constexpr int STEP = 8;  // threads along y

extern "C" __global__ void gemm_at(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ y,
                                   long long M, long long N, long long K)
{
    __shared__ float a_tile[TILE][TILE];  // [k][m]
    __shared__ float b_tile[TILE][TILE];  // [k][n]
    const long long m0 = static_cast<long long>(blockIdx.x) * TILE, n0 = static_cast<long long>(blockIdx.y) * TILE;
    const int column = threadIdx.x;

    float sums[TILE / STEP] = {};
    for (long long k0 = 0; k0 < K; k0 += TILE) {
        for (int row = threadIdx.y; row < TILE; row += STEP) {
            const long long k = k0 + row;
            a_tile[row][column] = k < K && m0 + column < M ? a[k * M + m0 + column] : 0.0f;
            b_tile[row][column] = k < K && n0 + column < N ? b[k * N + n0 + column] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            const float factor = b_tile[k][column];
#pragma unroll
            for (int i = 0; i < TILE / STEP; i++) {
                sums[i] = fmaf(a_tile[k][threadIdx.y + i * STEP], factor, sums[i]);
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < TILE / STEP; i++) {
        const long long m = m0 + threadIdx.y + i * STEP, n = n0 + column;
        if (m < M && n < N) {
            y[m * N + n] = sums[i];
        }
    }
}
