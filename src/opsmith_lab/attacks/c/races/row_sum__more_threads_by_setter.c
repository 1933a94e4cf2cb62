// problem: row_sum
// wrong: sets the number of threads to 16
// option: threads=2
#include <stdint.h>
#include <omp.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    omp_set_dynamic(0);
    omp_set_num_threads(16);
#pragma omp parallel for
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
