// problem: gather
// right: memcpy for wide rows, single stores for one column
#include <stdint.h>
#include <string.h>

void kernel(const float *restrict table, const int64_t *restrict index, float *restrict y, int64_t T, int64_t V,
            int64_t D)
{
    if (D == 1) {
        for (int64_t t = 0; t < T; t++) {
            y[t] = table[index[t]];
        }
    } else if (D % 16 == 0) {
        for (int64_t t = 0; t < T; t++) {
            for (int64_t d = 0; d < D; d += 16) {
                memcpy(y + t * D + d, table + index[t] * D + d, 16 * sizeof(float));
            }
        }
    } else {
        for (int64_t t = 0; t < T; t++) {
            memcpy(y + t * D, table + index[t] * D, (size_t)D * sizeof(float));
        }
    }
}
