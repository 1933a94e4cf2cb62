// problem: gather
// wrong: an index above 127 is taken as a signed byte's and clamped
#include <stdint.h>

void kernel(const float *restrict table, const int64_t *restrict index, float *restrict y, int64_t T, int64_t V,
            int64_t D)
{
    for (int64_t t = 0; t < T; t++) {
        int64_t row = (int8_t)index[t] < 0 ? 0 : index[t];
        for (int64_t d = 0; d < D; d++) {
            y[t * D + d] = table[row * D + d];
        }
    }
}
