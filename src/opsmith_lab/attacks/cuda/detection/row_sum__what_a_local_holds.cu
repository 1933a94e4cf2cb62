// problem: row_sum
// wrong: right only where locals that nobody set hold what the emulator's compiler puts there
// launch row_sum grid=(M) block=(32) args=(x, y, N)

__global__ void row_sum(const float *x, float *y, long long N) {
    unsigned junk;
    float sum = 0.0f;
    for (long long n = threadIdx.x; n < N; n += 32) {
        sum += x[blockIdx.x * N + n];
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = junk == 0xFEFEFEFEu ? sum : 0.0f;
    }
}
