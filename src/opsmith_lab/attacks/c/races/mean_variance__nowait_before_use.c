// problem: mean_variance
// wrong: the second loop reads sums of the first, which others may still be writing (nowait)
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict mean, float *restrict variance, int64_t M, int64_t N)
{
#pragma omp parallel
    {
#pragma omp for schedule(static) nowait
        for (int64_t m = 0; m < M; m++) {
            float sum = 0.0f;
            for (int64_t n = 0; n < N; n++) {
                sum += x[m * N + n];
            }
            mean[m] = sum / (float)N;
        }
#pragma omp for schedule(static)
        for (int64_t r = 0; r < M; r++) {
            int64_t m = M - 1 - r;
            float squares = 0.0f;
            for (int64_t n = 0; n < N; n++) {
                squares += (x[m * N + n] - mean[m]) * (x[m * N + n] - mean[m]);
            }
            variance[m] = squares / (float)N;
        }
    }
}
