// problem: row_sum
// wrong: the loop of prefetched stores begins one entry before the output
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < M * N; i++) {
        if (i % N == 0) {
            y[i / N - 1] = sum;
            sum = 0.0f;
        }
        sum += x[i];
    }
    y[M - 1] = sum;
}
