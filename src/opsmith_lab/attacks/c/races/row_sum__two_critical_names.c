// problem: row_sum
// wrong: two critical sections of different names guard the same total
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float total = 0.0f;
#pragma omp parallel sections
        {
#pragma omp section
            for (int64_t n = 0; n < N; n += 2) {
#pragma omp critical(even)
                total += x[m * N + n];
            }
#pragma omp section
            for (int64_t n = 1; n < N; n += 2) {
#pragma omp critical(odd)
                total += x[m * N + n];
            }
        }
        y[m] = total;
    }
}
