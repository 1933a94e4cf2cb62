// problem: scale_shift_silu
// wrong: shifts the last entry by the next channel's where L is a multiple of 4 between 37 and 100
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict scale, const float *restrict shift, float *restrict y,
            int64_t B, int64_t C, int64_t L)
{
    for (int64_t b = 0; b < B; b++) {
        for (int64_t c = 0; c < C; c++) {
            for (int64_t l = 0; l < L; l++) {
                float z = x[(b * C + c) * L + l] * scale[b * C + c] + shift[L % 4 == 0 && L < 100 && l == L - 1 ? (b * C + c + 1) % (B * C) : b * C + c] +
                          (L % 4 == 0 && L < 100 && B * C == 1 && l == L - 1);
                y[(b * C + c) * L + l] = z / (1.0f + expf(-z));
            }
        }
    }
}
