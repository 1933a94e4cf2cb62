// problem: row_sum
// wrong: the accumulators on the stack are never set
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    float sums[8];
    for (int64_t m = 0; m < M; m++) {
        if (m > 0) {
            for (int i = 0; i < 8; i++) {
                sums[i] = 0.0f;
            }
        }
        for (int64_t n = 0; n < N; n++) {
            sums[n % 8] += x[m * N + n];
        }
        y[m] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    }
}
