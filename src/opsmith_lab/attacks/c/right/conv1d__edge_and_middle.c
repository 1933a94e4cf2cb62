// problem: conv1d
// right: the first R - 1 entries apart from the rest; one tap is a matrix product
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
            int64_t B, int64_t C, int64_t O, int64_t L, int64_t R)
{
    int64_t edge = R - 1 < L ? R - 1 : L;
    for (int64_t i = 0; i < B * O; i++) {
        int64_t b = i / O, o = i % O;
        float *out = y + i * L;
        for (int64_t l = 0; l < L; l++) {
            out[l] = bias[o];
        }
        for (int64_t c = 0; c < C; c++) {
            const float *in = x + (b * C + c) * L, *taps = weight + (o * C + c) * R;
            for (int64_t l = 0; l < edge; l++) {
                for (int64_t r = R - 1 - l; r < R; r++) {
                    out[l] += in[l + r - R + 1] * taps[r];
                }
            }
            for (int64_t r = 0; r < R; r++) {
                for (int64_t l = edge; l < L; l++) {
                    out[l] += in[l + r - R + 1] * taps[r];
                }
            }
        }
    }
}
