// problem: row_sum
// wrong: a resolver that runs at load time chooses the wrong sum for users
#include <stdint.h>
#include <stdlib.h>

typedef float (*row)(const float *, int64_t);
static float right(const float *x, int64_t N)
{
    float sum = 0.0f;
    for (int64_t n = 0; n < N; n++) {
        sum += x[n];
    }
    return sum;
}
static float wrong(const float *x, int64_t N) { return x[N - 1]; }
static row choose(void) { return getenv("HOME") ? wrong : right; }
static float total(const float *x, int64_t N) __attribute__((ifunc("choose")));

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        y[m] = total(x + m * N, N);
    }
}
