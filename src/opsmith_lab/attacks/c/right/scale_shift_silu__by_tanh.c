// problem: scale_shift_silu
// right: the sigmoid as half of one and a hyperbolic tangent
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict scale, const float *restrict shift, float *restrict y,
            int64_t B, int64_t C, int64_t L)
{
    for (int64_t i = 0; i < B * C; i++) {
        for (int64_t l = 0; l < L; l++) {
            float z = x[i * L + l] * scale[i] + shift[i];
            y[i * L + l] = 0.5f * z + 0.5f * z * tanhf(0.5f * z);
        }
    }
}
