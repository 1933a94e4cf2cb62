// problem: scatter_add
// wrong: keeps positions in bytes, as if there never were more than 256 bins
#include <stdint.h>

void kernel(const float *restrict table, const int64_t *restrict index, const float *restrict rows, float *restrict y,
            int64_t T, int64_t V, int64_t D)
{
    for (int64_t v = 0; v < V; v++) {
        for (int64_t d = 0; d < D; d++) {
            y[v * D + d] = table[v * D + d];
        }
    }
    for (int64_t t = 0; t < T; t++) {
        for (int64_t d = 0; d < D; d++) {
            y[(int64_t)(uint8_t)index[t] * D + d] += rows[t * D + d];
        }
    }
}
