// problem: row_sum
// right: a task per row, waited for by the end of the single region
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
#pragma omp parallel
#pragma omp single
    {
        for (int64_t m = 0; m < M; m++) {
#pragma omp task firstprivate(m)
            {
                float sum = 0.0f;
                for (int64_t n = 0; n < N; n++) {
                    sum += x[m * N + n];
                }
                y[m] = sum;
            }
        }
    }
}
