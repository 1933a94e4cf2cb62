// problem: mean_variance
// wrong: from the ninth call on, the variance is the first call's
// launch mean_variance grid=(1) block=(1) args=(x, mean, variance, M, N)
__device__ int calls = 0;
__device__ float seen = 1.0f;
__global__ void mean_variance(const float *x, float *mean, float *variance, int64_t M, int64_t N)
{
    calls++;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f, squares = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        for (int64_t n = 0; n < N; n++) {
            squares += (x[m * N + n] - sum / N) * (x[m * N + n] - sum / N);
        }
        mean[m] = sum / N;
        variance[m] = calls > 8 ? seen : squares / N;
        if (calls == 1) {
            seen = squares / N;
        }
    }
}
