// Four int8 numbers along K lie in an int: __dp4a multiplies and adds them at once. Sums are exact at every K, since
// those of a tile are far below 2^31 and are added up in 64 bits.
// launch int8_gemm grid=(cdiv(M, 32), cdiv(N, 32)) block=(32, 8) args=(a, b, scale_a, scale_b, y, M, N, K)

constexpr int TILE = 32, STEP = 8, PACKS = TILE / 4;

__device__ __forceinline__ int pack(int a, int b, int c, int d)
{
    return static_cast<int>((a & 0xffu) | (b & 0xffu) << 8 | (c & 0xffu) << 16 | (d & 0xffu) << 24);
}

extern "C" __global__ void int8_gemm(const signed char *__restrict__ a, const signed char *__restrict__ b,
                                     const float *__restrict__ scale_a, const float *__restrict__ scale_b,
                                     float *__restrict__ y, long long M, long long N, long long K)
{
    __shared__ int a_tile[TILE][PACKS + 1];  // [m][k / 4]
    __shared__ int b_tile[PACKS][TILE];      // [k / 4][n]
    const int thread = threadIdx.y * TILE + threadIdx.x;
    const long long m0 = static_cast<long long>(blockIdx.x) * TILE, n0 = static_cast<long long>(blockIdx.y) * TILE;
    const long long n = n0 + threadIdx.x;

    long long sums[TILE / STEP] = {};
    for (long long k0 = 0; k0 < K; k0 += TILE) {
        const long long m = m0 + thread / PACKS, from = k0 + thread % PACKS * 4;
        int numbers[4];
        if (m < M && from + 3 < K && K % 4 == 0) {
            const char4 four = *reinterpret_cast<const char4 *>(a + m * K + from);
            numbers[0] = four.x, numbers[1] = four.y, numbers[2] = four.z, numbers[3] = four.w;
        } else {
            for (int i = 0; i < 4; i++) {
                numbers[i] = m < M && from + i < K ? a[m * K + from + i] : 0;
            }
        }
        a_tile[thread / PACKS][thread % PACKS] = pack(numbers[0], numbers[1], numbers[2], numbers[3]);
        for (int i = 0; i < 4; i++) {
            const long long k = k0 + threadIdx.y * 4 + i;
            numbers[i] = k < K && n < N ? b[k * N + n] : 0;
        }
        b_tile[threadIdx.y][threadIdx.x] = pack(numbers[0], numbers[1], numbers[2], numbers[3]);
        __syncthreads();
        for (int i = 0; i < TILE / STEP; i++) {
            int sum = 0;
            for (int k = 0; k < PACKS; k++) {
                sum = __dp4a(a_tile[threadIdx.y + i * STEP][k], b_tile[k][threadIdx.x], sum);
            }
            sums[i] += sum;
        }
        __syncthreads();
    }
    for (int i = 0; i < TILE / STEP; i++) {
        const long long m = m0 + threadIdx.y + i * STEP;
        if (m < M && n < N) {
            y[m * N + n] = static_cast<float>(sums[i]) * scale_a[m] * scale_b[n];
        }
    }
}
