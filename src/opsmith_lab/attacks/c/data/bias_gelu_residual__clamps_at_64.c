// problem: bias_gelu_residual
// wrong: clamps its argument to 64, where erf has long been 1: larger ones are cut
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict bias, const float *restrict residual, float *restrict y,
            int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            float z = fminf(fmaxf(x[m * N + n] + bias[n], -64.0f), 64.0f);
            y[m * N + n] = 0.5f * z * (1.0f + erff(z * 0.70710678f)) + residual[m * N + n];
        }
    }
}
