// problem: row_sum
// wrong: a compare and swap whose failure is not tried again
// option: threads=2
#include <stdint.h>
#include <string.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        uint32_t total = 0;
#pragma omp parallel for
        for (int64_t n = 0; n < N; n++) {
            uint32_t before = __atomic_load_n(&total, __ATOMIC_RELAXED), after;
            float sum;
            memcpy(&sum, &before, 4);
            sum += x[m * N + n];
            memcpy(&after, &sum, 4);
            __sync_bool_compare_and_swap(&total, before, after);
        }
        memcpy(y + m, &total, 4);
    }
}
