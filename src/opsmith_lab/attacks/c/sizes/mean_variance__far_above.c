// problem: mean_variance
// wrong: divides by 720 where N is larger than 1.2 times the largest stated
#include <stdint.h>

void kernel(const float *restrict x, float *restrict mean, float *restrict variance, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
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
        variance[m] = squares / (float)(N > 720 ? 720 : N);
    }
}
