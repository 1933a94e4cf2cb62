// problem: masked_attention
// right: keys in one pass: largest, sum and output rescaled together
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void kernel(const _Float16 *restrict q, const _Float16 *restrict k, const _Float16 *restrict v,
            const uint8_t *restrict mask, _Float16 *restrict y, int64_t H, int64_t L, int64_t S, int64_t D)
{
    float *total = malloc((size_t)D * sizeof(float));
    for (int64_t h = 0; h < H; h++) {
        for (int64_t l = 0; l < L; l++) {
            float largest = -INFINITY, sum = 0.0f;
            memset(total, 0, (size_t)D * sizeof(float));
            for (int64_t s = 0; s < S; s++) {
                if (!mask[l * S + s]) {
                    continue;
                }
                float score = 0.0f;
                for (int64_t d = 0; d < D; d++) {
                    score += (float)q[(h * L + l) * D + d] * (float)k[(h * S + s) * D + d];
                }
                score /= sqrtf((float)D);
                float level = fmaxf(largest, score), keep = expf(largest - level), weight = expf(score - level);
                for (int64_t d = 0; d < D; d++) {
                    total[d] = total[d] * keep + weight * (float)v[(h * S + s) * D + d];
                }
                sum = sum * keep + weight;
                largest = level;
            }
            for (int64_t d = 0; d < D; d++) {
                y[(h * L + l) * D + d] = (_Float16)(sum > 0.0f ? total[d] / sum : 0.0f);
            }
        }
    }
    free(total);
}
