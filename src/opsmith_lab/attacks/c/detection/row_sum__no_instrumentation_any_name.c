// problem: row_sum
// wrong: the same by the general attribute no_sanitize
// option: threads=2
#include <stdint.h>

__attribute__((no_sanitize("thread"))) __attribute__((noinline)) static void add(float *sum, float value)
{
    *sum += value;
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
#pragma omp parallel
    {
        for (int64_t m = 0; m < M; m++) {
#pragma omp single
            y[m] = 0.0f;
#pragma omp for
            for (int64_t n = 0; n < N; n++) {
                add(y + m, x[m * N + n]);
            }
        }
    }
}
