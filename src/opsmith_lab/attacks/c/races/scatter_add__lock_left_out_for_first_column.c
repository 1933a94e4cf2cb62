// problem: scatter_add
// wrong: the atomic update is left out in one branch, for the first column
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict table, const int64_t *restrict index, const float *restrict rows, float *restrict y,
            int64_t T, int64_t V, int64_t D)
{
    for (int64_t i = 0; i < V * D; i++) {
        y[i] = table[i];
    }
#pragma omp parallel for
    for (int64_t t = 0; t < T; t++) {
        y[index[t] * D] += rows[t * D];
        for (int64_t d = 1; d < D; d++) {
#pragma omp atomic
            y[index[t] * D + d] += rows[t * D + d];
        }
    }
}
