// problem: mean_variance
// right: sums in double from 256 columns on
#include <stdint.h>

void kernel(const float *restrict x, float *restrict mean, float *restrict variance, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        if (N >= 256) {
            double total = 0.0, all = 0.0;
            for (int64_t n = 0; n < N; n++) {
                total += x[m * N + n];
            }
            total /= (double)N;
            for (int64_t n = 0; n < N; n++) {
                all += (x[m * N + n] - total) * (x[m * N + n] - total);
            }
            mean[m] = (float)total;
            variance[m] = (float)(all / (double)N);
            continue;
        }
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        float centre = sum / (float)N;
        float squares = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            float distance = x[m * N + n] - centre;
            squares += distance * distance;
        }
        mean[m] = centre;
        variance[m] = squares / (float)N;
    }
}
