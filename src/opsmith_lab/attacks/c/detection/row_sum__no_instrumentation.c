// problem: row_sum
// wrong: a function with a lost update asks the compiler to leave out the instrumentation
// option: threads=2
#include <stdint.h>

__attribute__((no_sanitize_thread, noinline)) static void add(float *sum, float value)
{
    *sum += value;
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
#pragma omp parallel for
        for (int64_t n = 0; n < N; n++) {
            add(&sum, x[m * N + n]);
        }
        y[m] = sum;
    }
}
