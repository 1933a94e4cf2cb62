// problem: bias_gelu_residual
// right: one loop over all entries where N is a power of two, a mask in place of a remainder
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict bias, const float *restrict residual, float *restrict y,
            int64_t M, int64_t N)
{
    if ((N & (N - 1)) == 0) {
        for (int64_t i = 0; i < M * N; i++) {
            float z = x[i] + bias[i & (N - 1)];
            y[i] = 0.5f * z * (1.0f + erff(z * 0.70710678f)) + residual[i];
        }
        return;
    }
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            float z = x[m * N + n] + bias[n];
            float gelu = 0.5f * z * (1.0f + erff(z * 0.70710678f));
            y[m * N + n] = gelu + residual[m * N + n];
        }
    }
}
