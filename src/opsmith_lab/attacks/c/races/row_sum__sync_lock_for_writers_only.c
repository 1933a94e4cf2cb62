// problem: row_sum
// wrong: the lock is taken for the store, the load stands before it
// option: threads=2
#include <stdint.h>
#include <omp.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    omp_lock_t lock;
    omp_init_lock(&lock);
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
#pragma omp parallel for
        for (int64_t n = 0; n < N; n++) {
            float next = sum + x[m * N + n];
            omp_set_lock(&lock);
            sum = next;
            omp_unset_lock(&lock);
        }
        y[m] = sum;
    }
    omp_destroy_lock(&lock);
}
