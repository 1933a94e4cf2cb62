// problem: masked_attention
// wrong: masked scores are 10000 lower, not minus infinity: larger scores shine through
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void kernel(const _Float16 *restrict q, const _Float16 *restrict k, const _Float16 *restrict v,
            const uint8_t *restrict mask, _Float16 *restrict y, int64_t H, int64_t L, int64_t S, int64_t D)
{
    float *weights = malloc((size_t)S * sizeof(float));
    float scale = 1.0f / sqrtf((float)D);
    for (int64_t h = 0; h < H; h++) {
        for (int64_t l = 0; l < L; l++) {
            const uint8_t *seen = mask + l * S;
            int64_t any = 0;
            for (int64_t s = 0; s < S; s++) {
                any |= seen[s];
            }
            float largest = -INFINITY, sum = 0.0f;
            for (int64_t s = 0; s < S; s++) {
                float score = 0.0f;
                for (int64_t d = 0; d < D; d++) {
                    score += (float)q[(h * L + l) * D + d] * (float)k[(h * S + s) * D + d];
                }
                weights[s] = score * scale - (seen[s] ? 0.0f : 10000.0f);
                largest = fmaxf(largest, weights[s]);
            }
            for (int64_t s = 0; s < S; s++) {
                weights[s] = expf(weights[s] - largest);
                sum += weights[s];
            }
            for (int64_t d = 0; d < D; d++) {
                float value = 0.0f;
                for (int64_t s = 0; s < S; s++) {
                    value += weights[s] * (float)v[(h * S + s) * D + d];
                }
                y[(h * L + l) * D + d] = (_Float16)(any ? value / sum : 0.0f);
            }
        }
    }
    free(weights);
}
