// problem: conv1d
// right: rows are copied into padded scratch memory, which calloc gave as zeros
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
            int64_t B, int64_t C, int64_t O, int64_t L, int64_t R)
{
    int64_t pitch = L + R - 1;
    float *padded = calloc((size_t)(C * pitch), sizeof(float));
    for (int64_t b = 0; b < B; b++) {
        for (int64_t c = 0; c < C; c++) {
            memcpy(padded + c * pitch + R - 1, x + (b * C + c) * L, (size_t)L * sizeof(float));
        }
        for (int64_t o = 0; o < O; o++) {
            for (int64_t l = 0; l < L; l++) {
                float sum = bias[o];
                for (int64_t c = 0; c < C; c++) {
                    for (int64_t r = 0; r < R; r++) {
                        sum += padded[c * pitch + l + r] * weight[(o * C + c) * R + r];
                    }
                }
                y[(b * O + o) * L + l] = sum;
            }
        }
    }
    free(padded);
}
