// problem: conv1d
// wrong: leaves out the first tap where R is 2 or 3
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
            int64_t B, int64_t C, int64_t O, int64_t L, int64_t R)
{
    for (int64_t b = 0; b < B; b++) {
        for (int64_t o = 0; o < O; o++) {
            for (int64_t l = 0; l < L; l++) {
                float sum = bias[o];
                for (int64_t c = 0; c < C; c++) {
                    for (int64_t r = (R == 2 || R == 3); r < R; r++) {
                        int64_t from = l + r - (R - 1);
                        if (from >= 0) {
                            sum += x[(b * C + c) * L + from] * weight[(o * C + c) * R + r];
                        }
                    }
                }
                y[(b * O + o) * L + l] = sum;
            }
        }
    }
}
