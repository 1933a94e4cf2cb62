// problem: row_sum
// right: partial sums in an array of variable length on the stack
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int64_t lanes = N < 16 ? N : 16;
    float sums[lanes];
    for (int64_t m = 0; m < M; m++) {
        for (int64_t i = 0; i < lanes; i++) {
            sums[i] = 0.0f;
        }
        for (int64_t n = 0; n < N; n++) {
            sums[n % lanes] += x[m * N + n];
        }
        float sum = 0.0f;
        for (int64_t i = 0; i < lanes; i++) {
            sum += sums[i];
        }
        y[m] = sum;
    }
}
