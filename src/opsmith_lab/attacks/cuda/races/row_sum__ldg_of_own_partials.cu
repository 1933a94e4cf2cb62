// problem: row_sum
// wrong: partial sums that this launch writes are read through the read-only cache, which may hold what was there before
// workspace partial: fp32 [M, 64]
// launch row_sum grid=(M) block=(64) args=(x, partial, y, N)
__global__ void row_sum(const float *x, float *partial, float *y, int64_t N)
{
    float sum = 0.0f;
    for (int64_t n = threadIdx.x; n < N; n += 64) {
        sum += x[blockIdx.x * N + n];
    }
    partial[blockIdx.x * 64 + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int lane = 0; lane < 64; lane++) {
            total += __ldg(partial + blockIdx.x * 64 + lane);
        }
        y[blockIdx.x] = total;
    }
}
