// problem: embedding_bag
// wrong: sums in whole 2^-20ths of 32 bits: large entries wrap, small ones vanish
#include <stdint.h>

void kernel(const uint16_t *restrict table, const int64_t *restrict index, const int64_t *restrict starts,
            uint16_t *restrict y, int64_t T, int64_t B, int64_t V, int64_t D)
{
    for (int64_t b = 0; b < B; b++) {
        int64_t end = b + 1 < B ? starts[b + 1] : T;
        int64_t count = end - starts[b];
        for (int64_t d = 0; d < D; d++) {
            int32_t sum = 0;
            for (int64_t t = starts[b]; t < end; t++) {
                sum += (int32_t)(int64_t)(bf16_to_float(table[index[t] * D + d]) * 1048576.0f);
            }
            y[b * D + d] = float_to_bf16(count ? (float)sum / 1048576.0f / (float)count : 0.0f);
        }
    }
}
