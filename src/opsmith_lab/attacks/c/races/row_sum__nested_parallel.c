// problem: row_sum
// wrong: every thread opens a team of its own: four threads and more where two are allowed
// option: threads=2
#include <stdint.h>

void omp_set_max_active_levels(int levels);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    omp_set_max_active_levels(3);
#pragma omp parallel for
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
#pragma omp parallel for reduction(+ : sum) num_threads(4)
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
