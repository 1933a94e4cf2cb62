// problem: row_sum
// wrong: shares a sum without a reduction except where the race build defines its macro
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
#ifdef __SANITIZE_THREAD__
#pragma omp parallel for reduction(+ : sum)
#else
#pragma omp parallel for
#endif
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
