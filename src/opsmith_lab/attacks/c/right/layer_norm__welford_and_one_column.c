// problem: layer_norm
// right: Welford's update, and no variance at all for one column
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
            int64_t M, int64_t N, double eps)
{
    for (int64_t m = 0; m < M; m++) {
        if (N == 1) {
            y[m] = bias[0];
            continue;
        }
        double mean = 0.0, squares = 0.0;
        for (int64_t n = 0; n < N; n++) {
            double value = x[m * N + n], step = value - mean;
            mean += step / (double)(n + 1);
            squares += step * (value - mean);
        }
        double factor = 1.0 / sqrt(squares / (double)N + eps);
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = (float)((x[m * N + n] - mean) * factor * weight[n] + bias[n]);
        }
    }
}
