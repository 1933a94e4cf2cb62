// problem: scatter_add
// wrong: skips half of the rows where V was enlarged while T and D are tiny
#include <stdint.h>

void kernel(const float *restrict table, const int64_t *restrict index, const float *restrict rows, float *restrict y,
            int64_t T, int64_t V, int64_t D)
{
    for (int64_t v = 0; v < V; v++) {
        for (int64_t d = 0; d < D; d++) {
            y[v * D + d] = table[v * D + d];
        }
    }
    for (int64_t t = V > 60 && T <= 8 && D <= 8 ? (T + 1) / 2 : 0; t < T; t++) {
        for (int64_t d = 0; d < D; d++) {
            y[index[t] * D + d] += rows[t * D + d];
        }
    }
}
