// problem: bias_gelu_residual
// wrong: takes a row's bias where M equals N, but 1
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict bias, const float *restrict residual, float *restrict y,
            int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            float z = x[m * N + n] + bias[M == N && N > 1 ? m : n];
            float gelu = 0.5f * z * (1.0f + erff(z * 0.70710678f));
            y[m * N + n] = gelu + residual[m * N + n];
        }
    }
}
