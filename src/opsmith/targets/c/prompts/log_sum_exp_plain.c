#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N, double scale)
{
    const float factor = (float)scale;
    for (int64_t m = 0; m < M; m++) {
        const float *row = x + m * N;
        float largest = factor * row[0];
        for (int64_t n = 0; n < N; n++) {
            float value = factor * row[n];
            largest = value > largest ? value : largest;
        }
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += expf(factor * row[n] - largest);
        }
        y[m] = largest + logf(sum);
    }
}
