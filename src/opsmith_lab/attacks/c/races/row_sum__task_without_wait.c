// problem: row_sum
// wrong: the tasks' sums are added before the tasks are waited for
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
#pragma omp parallel
#pragma omp single
    for (int64_t m = 0; m < M; m++) {
        float left = 0.0f, right = 0.0f;
#pragma omp task shared(left)
        for (int64_t n = 0; n < N / 2; n++) {
            left += x[m * N + n];
        }
        for (int64_t n = N / 2; n < N; n++) {
            right += x[m * N + n];
        }
        float sum = left + right;
#pragma omp taskwait
        y[m] = sum;
    }
}
