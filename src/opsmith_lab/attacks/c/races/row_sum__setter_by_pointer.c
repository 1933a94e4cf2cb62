// problem: row_sum
// wrong: the setter of threads is called by a pointer to it
// option: threads=2
#include <stdint.h>
#include <omp.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    void (*volatile choose)(int) = omp_set_num_threads;
    choose(8);
#pragma omp parallel for schedule(static, 1)
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
