// problem: row_sum
// right: three ways for short, middle and long rows
#include <stdint.h>

static float pairwise(const float *x, int64_t N)
{
    if (N <= 32) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[n];
        }
        return sum;
    }
    return pairwise(x, N / 2) + pairwise(x + N / 2, N - N / 2);
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        if (N < 8) {
            y[m] = 0.0f;
            for (int64_t n = 0; n < N; n++) {
                y[m] += x[m * N + n];
            }
        } else if (N % 16 == 0) {
            float sums[16] = {0};
            for (int64_t n = 0; n < N; n += 16) {
                for (int64_t i = 0; i < 16; i++) {
                    sums[i] += x[m * N + n + i];
                }
            }
            y[m] = pairwise(sums, 16);
        } else {
            y[m] = pairwise(x + m * N, N);
        }
    }
}
