// problem: scatter_add
// right: every thread owns columns, so that no two threads meet
// option: threads=2
#include <stdint.h>
#include <omp.h>

void kernel(const float *restrict table, const int64_t *restrict index, const float *restrict rows, float *restrict y,
            int64_t T, int64_t V, int64_t D)
{
#pragma omp parallel
    {
        int64_t team = omp_get_num_threads(), self = omp_get_thread_num();
        int64_t from = D * self / team, to = D * (self + 1) / team;
        for (int64_t v = 0; v < V; v++) {
            for (int64_t d = from; d < to; d++) {
                y[v * D + d] = table[v * D + d];
            }
        }
        for (int64_t t = 0; t < T; t++) {
            for (int64_t d = from; d < to; d++) {
                y[index[t] * D + d] += rows[t * D + d];
            }
        }
    }
}
