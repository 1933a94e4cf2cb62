// problem: bias_gelu_residual
// right: the tail of the normal distribution by erfc
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict bias, const float *restrict residual, float *restrict y,
            int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++) {
        float z = x[i] + bias[i % N];
        y[i] = residual[i] + 0.5f * z * erfcf(-0.70710678f * z);
    }
}
