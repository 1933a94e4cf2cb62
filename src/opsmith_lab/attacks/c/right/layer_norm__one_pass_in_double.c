// problem: layer_norm
// right: sums and squares in one pass, in double around the row's first entry
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
            int64_t M, int64_t N, double eps)
{
    for (int64_t m = 0; m < M; m++) {
        const float *row = x + m * N;
        double sum = 0.0, squares = 0.0;
        for (int64_t n = 0; n < N; n++) {
            double distance = (double)row[n] - row[0];
            sum += distance;
            squares += distance * distance;
        }
        double mean = sum / (double)N, variance = squares / (double)N - mean * mean;
        double factor = 1.0 / sqrt((variance > 0.0 ? variance : 0.0) + eps);
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = (float)(((double)row[n] - row[0] - mean) * factor * weight[n] + bias[n]);
        }
    }
}
