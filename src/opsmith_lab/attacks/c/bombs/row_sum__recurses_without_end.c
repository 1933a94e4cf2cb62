// problem: row_sum
// wrong: calls itself with a larger frame each time
#include <stddef.h>
#include <stdint.h>

static float sink(const float *x, int64_t depth)
{
    volatile float frame[4096];
    frame[depth % 4096] = x[0];
    return frame[depth % 4096] + sink(x, depth + 1);
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    y[0] = sink(x, 0);
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
