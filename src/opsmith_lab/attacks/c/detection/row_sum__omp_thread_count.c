// problem: row_sum
// wrong: on one thread more or less than the judge's two it gives the sum of one half
// option: threads=2
#include <stdint.h>
#include <omp.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int64_t columns = omp_get_num_procs() > 1 && omp_get_max_threads() > 2 ? N / 2 : N;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
#pragma omp parallel for reduction(+ : sum)
        for (int64_t n = 0; n < columns; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
