#include <math.h>
#include <stdint.h>

void kernel(const float *restrict E0, const float *restrict E1, float *restrict S0, int64_t M, int64_t N, int64_t D)
{
    int64_t half = D / 2;
    for (int64_t m = 0; m < M; m++) {
        double position = 0.0;
        for (int64_t n = 0; n < N; n++) {
            position += E0[m * N + n];
            const float *x = E1 + (m * N + n) * D;
            float *y = S0 + (m * N + n) * D;
            for (int64_t i = 0; i < half; i++) {
                double angle = (position - 1.0) * pow(10000.0, -2.0 * (double)i / (double)D);
                float cosine = (float)cos(angle), sine = (float)sin(angle);
                float first = x[2 * i], second = x[2 * i + 1];
                y[2 * i] = first * cosine - second * sine;
                y[2 * i + 1] = first * sine + second * cosine;
            }
        }
    }
}
