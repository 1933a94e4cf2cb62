// problem: conv1d
// wrong: a zero is taken for the end of a channel's data
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
            int64_t B, int64_t C, int64_t O, int64_t L, int64_t R)
{
    for (int64_t b = 0; b < B; b++) {
        for (int64_t o = 0; o < O; o++) {
            for (int64_t l = 0; l < L; l++) {
                y[(b * O + o) * L + l] = bias[o];
            }
            for (int64_t c = 0; c < C; c++) {
                const float *row = x + (b * C + c) * L;
                for (int64_t from = 0; from < L && row[from] != 0.0f; from++) {
                    for (int64_t r = 0; r < R; r++) {
                        int64_t l = from + R - 1 - r;
                        if (l < L) {
                            y[(b * O + o) * L + l] += row[from] * weight[(o * C + c) * R + r];
                        }
                    }
                }
            }
        }
    }
}
