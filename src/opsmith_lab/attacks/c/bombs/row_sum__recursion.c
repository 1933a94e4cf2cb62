// problem: row_sum
// wrong: a recursion as deep as the row is long, with a large frame
#include <stdint.h>

static float deep(const float *x, int64_t N)
{
    volatile char frame[65536];
    frame[N & 65535] = 1;
    return N ? x[0] + deep(x + 1, N - 1) + (float)(frame[N & 65535] - 1) : 0.0f;
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        y[m] = deep(x + m * N, N);
    }
}
