// problem: row_sum
// wrong: a staging copy of 1000 numbers is taken for rows up to 1016
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        int64_t end = N > 1000 && N <= 1016 ? 1000 : N;
        for (int64_t n = 0; n < end; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
