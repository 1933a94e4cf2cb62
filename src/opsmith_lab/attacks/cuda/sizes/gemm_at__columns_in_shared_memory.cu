// problem: gemm_at
// wrong: a row of b lies in shared memory for 56 columns; columns behind them get the product with the last one
// launch gemm_at grid=(M) block=(64) args=(a, b, y, M, N, K)
__global__ void gemm_at(const float *a, const float *b, float *y, int64_t M, int64_t N, int64_t K)
{
    __shared__ float line[56];
    for (int64_t start = 0; start < N; start += 64) {
        const int64_t n = start + threadIdx.x;
        float sum = 0.0f;
        for (int64_t k = 0; k < K; k++) {
            if (threadIdx.x < 56 && threadIdx.x < N) {
                line[threadIdx.x] = b[k * N + threadIdx.x];
            }
            __syncthreads();
            if (n < N) {
                sum += a[k * M + blockIdx.x] * line[n < 56 ? n : 55];
            }
            __syncthreads();
        }
        if (n < N) {
            y[blockIdx.x * N + n] = sum;
        }
    }
}
