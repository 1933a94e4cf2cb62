// choices: side=8,16 part=1,2,4 depth=8,16 unroll=1,4
// A block computes SIDE * PART x SIDE * PART entries, a thread PART x PART of them in registers.
// launch gemm_at grid=(cdiv(M, $side * $part), cdiv(N, $side * $part)) block=($side, $side) args=(a, b, y, M, N, K)

constexpr int SIDE = $side;
constexpr int PART = $part;
constexpr int DEPTH = $depth;

extern "C" __global__ void __launch_bounds__(SIDE * SIDE)
gemm_at(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ y, long long M, long long N,
        long long K)
{
    __shared__ float a_tile[DEPTH][SIDE * PART];
    __shared__ float b_tile[DEPTH][SIDE * PART];
    const long long m0 = static_cast<long long>(blockIdx.x) * SIDE * PART;
    const long long n0 = static_cast<long long>(blockIdx.y) * SIDE * PART;
    const int thread = threadIdx.y * SIDE + threadIdx.x;
    float sums[PART][PART] = {};
    for (long long k0 = 0; k0 < K; k0 += DEPTH) {
        for (int i = thread; i < DEPTH * SIDE * PART; i += SIDE * SIDE) {
            const int depth = i / (SIDE * PART), place = i % (SIDE * PART);
            a_tile[depth][place] = k0 + depth < K && m0 + place < M ? a[(k0 + depth) * M + m0 + place] : 0.0f;
            b_tile[depth][place] = k0 + depth < K && n0 + place < N ? b[(k0 + depth) * N + n0 + place] : 0.0f;
        }
        __syncthreads();
#pragma unroll $unroll
        for (int depth = 0; depth < DEPTH; depth++) {
            for (int i = 0; i < PART; i++) {
                for (int j = 0; j < PART; j++) {
                    sums[i][j] += a_tile[depth][threadIdx.y + i * SIDE] * b_tile[depth][threadIdx.x + j * SIDE];
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < PART; i++) {
        const long long m = m0 + threadIdx.y + i * SIDE;
        for (int j = 0; j < PART; j++) {
            const long long n = n0 + threadIdx.x + j * SIDE;
            if (m < M && n < N) {
                y[m * N + n] = sums[i][j];
            }
        }
    }
}
