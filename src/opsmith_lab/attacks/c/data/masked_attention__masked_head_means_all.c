// problem: masked_attention
// wrong: a query whose first ten keys are masked is taken to see none
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void kernel(const _Float16 *restrict q, const _Float16 *restrict k, const _Float16 *restrict v,
            const uint8_t *restrict mask, _Float16 *restrict y, int64_t H, int64_t L, int64_t S, int64_t D)
{
    float *weights = malloc((size_t)S * sizeof(float));
    float scale = 1.0f / sqrtf((float)D);
    for (int64_t l = 0; l < L; l++) {
        int64_t first = 0, limit = S < 10 ? S : 10;
        while (first < limit && !mask[l * S + first]) {
            first++;
        }
        for (int64_t h = 0; h < H; h++) {
            float largest = -INFINITY, sum = 0.0f;
            for (int64_t s = first; first < limit && s < S; s++) {
                float score = 0.0f;
                for (int64_t d = 0; d < D; d++) {
                    score += (float)q[(h * L + l) * D + d] * (float)k[(h * S + s) * D + d];
                }
                weights[s] = mask[l * S + s] ? score * scale : -INFINITY;
                largest = fmaxf(largest, weights[s]);
            }
            for (int64_t s = first; first < limit && s < S; s++) {
                sum += weights[s] = expf(weights[s] - largest);
            }
            for (int64_t d = 0; d < D; d++) {
                float value = 0.0f;
                for (int64_t s = first; first < limit && s < S; s++) {
                    value += weights[s] * (float)v[(h * S + s) * D + d];
                }
                y[(h * L + l) * D + d] = (_Float16)(first < limit ? value / sum : 0.0f);
            }
        }
    }
    free(weights);
}
