// problem: layer_norm
// right: mean and variance in one pass by Welford's recurrence in double
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
            int64_t M, int64_t N, double eps)
{
    for (int64_t m = 0; m < M; m++) {
        double mean = 0.0, squares = 0.0;
        for (int64_t n = 0; n < N; n++) {
            double distance = (double)x[m * N + n] - mean;
            mean += distance / (double)(n + 1);
            squares += distance * ((double)x[m * N + n] - mean);
        }
        double factor = 1.0 / sqrt(squares / (double)N + eps);
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = (float)(((double)x[m * N + n] - mean) * factor * (double)weight[n] + (double)bias[n]);
        }
    }
}
