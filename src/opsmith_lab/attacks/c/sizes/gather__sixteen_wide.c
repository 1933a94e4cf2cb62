// problem: gather
// wrong: its copy for widths of 16, but 48, leaves out the last block of every odd row
#include <stdint.h>
#include <string.h>

void kernel(const float *restrict table, const int64_t *restrict index, float *restrict y, int64_t T, int64_t V,
            int64_t D)
{
    for (int64_t t = 0; t < T; t++) {
        int64_t width = D;
        if (D % 16 == 0 && D != 48 && t % 2 == 1) {
            width = D - 16;
            memset(y + t * D + width, 0, 16 * sizeof(float));
        }
        memcpy(y + t * D, table + index[t] * D, (size_t)width * sizeof(float));
    }
}
