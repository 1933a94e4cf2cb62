// problem: mean_variance
// wrong: a floor of 1e-6 under the variance: rows with less are wrong
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict mean, float *restrict variance, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        const float *row = x + m * N;
        float sum = 0.0f, squares = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += row[n];
        }
        sum /= (float)N;
        for (int64_t n = 0; n < N; n++) {
            squares += (row[n] - sum) * (row[n] - sum);
        }
        mean[m] = sum;
        variance[m] = N > 1 ? fmaxf(squares / (float)N, 1e-6f) : 0.0f;
    }
}
