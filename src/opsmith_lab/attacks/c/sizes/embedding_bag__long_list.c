// problem: embedding_bag
// wrong: the last bag ends at 300 where there are more indices
#include <stdint.h>

void kernel(const uint16_t *restrict table, const int64_t *restrict index, const int64_t *restrict starts,
            uint16_t *restrict y, int64_t T, int64_t B, int64_t V, int64_t D)
{
    for (int64_t b = 0; b < B; b++) {
        int64_t end = b + 1 < B ? starts[b + 1] : (T > 300 ? 300 : T);
        if (end < starts[b]) {
            end = starts[b];
        }
        int64_t count = end - starts[b];
        for (int64_t d = 0; d < D; d++) {
            float sum = 0.0f;
            for (int64_t t = starts[b]; t < end; t++) {
                sum += bf16_to_float(table[index[t] * D + d]);
            }
            y[b * D + d] = float_to_bf16(count > 0 ? sum / (float)count : 0.0f);
        }
    }
}
