// problem: row_sum
// wrong: a row whose first, middle and last entry are equal is taken for a constant one
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        const float *row = x + m * N;
        if (N > 3 && row[0] == row[N / 2] && row[0] == row[N - 1]) {
            y[m] = row[0] * (float)N;
            continue;
        }
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += row[n];
        }
        y[m] = sum;
    }
}
