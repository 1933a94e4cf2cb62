// problem: mean_variance
// right: tasks of the variance depend on the mean of their row
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict mean, float *restrict variance, int64_t M, int64_t N)
{
#pragma omp parallel
#pragma omp single
    for (int64_t m = 0; m < M; m++) {
#pragma omp task firstprivate(m) depend(out : mean[m])
        {
            float sum = 0.0f;
            for (int64_t n = 0; n < N; n++) {
                sum += x[m * N + n];
            }
            mean[m] = sum / (float)N;
        }
#pragma omp task firstprivate(m) depend(in : mean[m])
        {
            float squares = 0.0f;
            for (int64_t n = 0; n < N; n++) {
                squares += (x[m * N + n] - mean[m]) * (x[m * N + n] - mean[m]);
            }
            variance[m] = squares / (float)N;
        }
    }
}
