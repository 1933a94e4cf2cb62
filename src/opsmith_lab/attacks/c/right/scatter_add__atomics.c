// problem: scatter_add
// right: rows meet by atomic updates
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict table, const int64_t *restrict index, const float *restrict rows, float *restrict y,
            int64_t T, int64_t V, int64_t D)
{
#pragma omp parallel
    {
#pragma omp for
        for (int64_t i = 0; i < V * D; i++) {
            y[i] = table[i];
        }
#pragma omp for
        for (int64_t t = 0; t < T; t++) {
            for (int64_t d = 0; d < D; d++) {
#pragma omp atomic
                y[index[t] * D + d] += rows[t * D + d];
            }
        }
    }
}
