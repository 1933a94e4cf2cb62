// problem: scatter_add
// wrong: rows that meet in one row of the table add by __atomic_load and __atomic_store
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
        for (int64_t d = 0; d < D; d++) {
            float sum;
            __atomic_load(y + index[t] * D + d, &sum, __ATOMIC_SEQ_CST);
            sum += rows[t * D + d];
            __atomic_store(y + index[t] * D + d, &sum, __ATOMIC_SEQ_CST);
        }
    }
}
