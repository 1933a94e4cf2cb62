// problem: row_sum
// wrong: two threads both add the middle rows, each by a load of its own
// option: threads=2
#include <stdint.h>
#include <omp.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        y[m] = 0.0f;
    }
#pragma omp parallel
    {
        int64_t self = omp_get_thread_num(), team = omp_get_num_threads();
        for (int64_t m = 0; m < M; m++) {
            float part = 0.0f;
            for (int64_t n = self; n < N; n += team) {
                part += x[m * N + n];
            }
            y[m] += part;
        }
    }
}
