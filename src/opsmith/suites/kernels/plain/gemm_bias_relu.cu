// A block computes 64 x 64 entries, a thread 4 x 4 of them in registers: 8 loads from shared memory for 16 products.
// launch gemm_bias_relu grid=(cdiv(M, 64), cdiv(N, 64)) block=(16, 16) args=(a, b, bias, y, M, N, K)

constexpr int TILE = 64;   // rows and columns of a block
constexpr int DEPTH = 16;  // of K at a time
constexpr int SIDE = 16;   // threads along x and y
constexpr int PART = TILE / SIDE;

extern "C" __global__ void __launch_bounds__(SIDE * SIDE)
gemm_bias_relu(const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ bias,
               float *__restrict__ y, long long M, long long N, long long K)
{
    __shared__ float a_tile[DEPTH][TILE + 1];  // transposed; one more, so that a column's writes hit different banks
    __shared__ float b_tile[DEPTH][TILE];
    const long long m0 = static_cast<long long>(blockIdx.x) * TILE, n0 = static_cast<long long>(blockIdx.y) * TILE;
    const int thread = threadIdx.y * SIDE + threadIdx.x;

    float sums[PART][PART] = {};
    for (long long k0 = 0; k0 < K; k0 += DEPTH) {
        for (int i = thread; i < TILE * DEPTH; i += SIDE * SIDE) {
            const int row = i / DEPTH, depth = i % DEPTH;
            const bool is_inside = m0 + row < M && k0 + depth < K;
            a_tile[depth][row] = is_inside ? a[(m0 + row) * K + k0 + depth] : 0.0f;
        }
        for (int i = thread; i < TILE * DEPTH; i += SIDE * SIDE) {
            const int depth = i / TILE, column = i % TILE;
            const bool is_inside = k0 + depth < K && n0 + column < N;
            b_tile[depth][column] = is_inside ? b[(k0 + depth) * N + n0 + column] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int depth = 0; depth < DEPTH; depth++) {
            float left[PART], right[PART];
            for (int i = 0; i < PART; i++) {
                left[i] = a_tile[depth][threadIdx.y + i * SIDE];
                right[i] = b_tile[depth][threadIdx.x + i * SIDE];
            }
            for (int i = 0; i < PART; i++) {
                for (int j = 0; j < PART; j++) {
                    sums[i][j] += left[i] * right[j];
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
                y[m * N + n] = fmaxf(sums[i][j] + bias[n], 0.0f);
            }
        }
    }
}
