// problem: row_sum
// wrong: leaves out the last entry for 131 < N < 1000
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        int64_t end = N > 131 && N < 1000 ? N - 1 : N;
        for (int64_t n = 0; n < end; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
