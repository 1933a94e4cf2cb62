// problem: scatter_add
// right: a lock per thirty-two rows of the table
// option: threads=2
#include <omp.h>
#include <stdint.h>
#include <string.h>

void kernel(const float *restrict table, const int64_t *restrict index, const float *restrict rows, float *restrict y,
            int64_t T, int64_t V, int64_t D)
{
    omp_lock_t locks[32];
    for (int i = 0; i < 32; i++) {
        omp_init_lock(&locks[i]);
    }
    memcpy(y, table, (size_t)(V * D) * sizeof(float));
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t t = 0; t < T; t++) {
        omp_set_lock(&locks[index[t] & 31]);
        for (int64_t d = 0; d < D; d++) {
            y[index[t] * D + d] += rows[t * D + d];
        }
        omp_unset_lock(&locks[index[t] & 31]);
    }
    for (int i = 0; i < 32; i++) {
        omp_destroy_lock(&locks[i]);
    }
}
