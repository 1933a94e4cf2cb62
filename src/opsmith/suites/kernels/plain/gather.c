#include <stdint.h>

void kernel(const float *restrict table, const int64_t *restrict index, float *restrict y, int64_t T, int64_t V,
            int64_t D)
{
    for (int64_t t = 0; t < T; t++) {
        for (int64_t d = 0; d < D; d++) {
            y[t * D + d] = table[index[t] * D + d];
        }
    }
}
