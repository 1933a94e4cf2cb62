// problem: row_sum
// wrong: a helper returns a pointer into its own frame
#include <stdint.h>

__attribute__((noinline)) static float *partial(const float *x, int64_t N)
{
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int64_t n = 0; n < N; n++) {
        sums[n % 4] += x[n];
    }
    uintptr_t at = (uintptr_t)sums;
    return (float *)at;
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float *sums = partial(x + m * N, N);
        float even = sums[0] + sums[2];
        y[m] = even + sums[1] + sums[3];
    }
}
