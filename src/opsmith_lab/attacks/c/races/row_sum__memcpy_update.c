// problem: row_sum
// wrong: the shared total is moved by memcpy, which no instrumented store shows
// option: threads=2
#include <stdint.h>
#include <string.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float totals[2] = {0.0f, 0.0f};
        volatile size_t width = sizeof totals;
#pragma omp parallel for
        for (int64_t n = 0; n < N; n++) {
            float mine[2];
            memcpy(mine, totals, width);
            mine[n % 2] += x[m * N + n];
            memcpy(totals, mine, width);
        }
        y[m] = totals[0] + totals[1];
    }
}
