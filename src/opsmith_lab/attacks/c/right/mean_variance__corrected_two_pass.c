// problem: mean_variance
// right: two passes around a rounded mean, corrected by the sum of distances
#include <stdint.h>

void kernel(const float *restrict x, float *restrict mean, float *restrict variance, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        double sum = 0.0;
        float squares = 0.0f, rest = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        mean[m] = (float)(sum / (double)N);
        for (int64_t n = 0; n < N; n++) {
            float distance = x[m * N + n] - mean[m];
            squares += distance * distance;
            rest += distance;
        }
        variance[m] = (squares - rest * rest / (float)N) / (float)N;
    }
}
