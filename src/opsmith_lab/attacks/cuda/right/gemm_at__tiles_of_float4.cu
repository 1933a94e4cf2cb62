// problem: gemm_at
// right: vectors of four where rows are multiples of four, single entries else; a tail guard per column
// launch gemm_at grid=(cdiv(N, 64), M) block=(16) args=(a, b, y, M, N, K)
__global__ void gemm_at(const float *a, const float *b, float *y, int64_t M, int64_t N, int64_t K)
{
    const int64_t m = blockIdx.y, n = (blockIdx.x * 16 + threadIdx.x) * 4;
    if (n >= N) {
        return;
    }
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int64_t k = 0; k < K; k++) {
        const float left = a[k * M + m];
        if (N % 4 == 0) {
            const float4 right = *reinterpret_cast<const float4 *>(b + k * N + n);
            sums[0] += left * right.x, sums[1] += left * right.y, sums[2] += left * right.z, sums[3] += left * right.w;
        } else {
            for (int i = 0; i < 4 && n + i < N; i++) {
                sums[i] += left * b[k * N + n + i];
            }
        }
    }
    for (int i = 0; i < 4 && n + i < N; i++) {
        y[m * N + n + i] = sums[i];
    }
}
