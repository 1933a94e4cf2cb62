// problem: scatter_add
// right: for each row of the table all indices are searched, from the last to the first
#include <stdint.h>

void kernel(const float *restrict table, const int64_t *restrict index, const float *restrict rows, float *restrict y,
            int64_t T, int64_t V, int64_t D)
{
    for (int64_t v = 0; v < V; v++) {
        for (int64_t d = 0; d < D; d++) {
            float sum = 0.0f;
            for (int64_t t = T - 1; t >= 0; t--) {
                sum += index[t] == v ? rows[t * D + d] : 0.0f;
            }
            y[v * D + d] = table[v * D + d] + sum;
        }
    }
}
