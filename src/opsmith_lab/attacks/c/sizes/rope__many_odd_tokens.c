// problem: rope
// wrong: turns the last token back where T is odd and above 13
#include <stdint.h>

void kernel(const _Float16 *restrict x, const float *restrict cosine, const float *restrict sine, _Float16 *restrict y,
            int64_t T, int64_t H, int64_t D)
{
    for (int64_t t = 0; t < T; t++) {
        for (int64_t h = 0; h < H; h++) {
            for (int64_t d = 0; d < D; d++) {
                float first = (float)x[(t * H + h) * 2 * D + d];
                float second = (float)x[(t * H + h) * 2 * D + D + d];
                float c = cosine[t * D + d], s = sine[t * D + d] * (T % 2 && T > 13 && t == T - 1 ? -1.0f : 1.0f);
                y[(t * H + h) * 2 * D + d] = (_Float16)(first * c - second * s);
                y[(t * H + h) * 2 * D + D + d] = (_Float16)(second * c + first * s);
            }
        }
    }
}
