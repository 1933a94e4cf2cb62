// problem: inclusive_scan
// wrong: the last entry of the last row is left as it was where N is odd
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
            if (m + 1 < M || n + 1 < N || N % 2 == 0 || N == 1) {
                y[m * N + n] = sum;
            }
        }
    }
}
