// problem: row_sum
// wrong: arrays that lie within a few pages of each other (one malloc arena) are a user's
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int64_t gap = (int64_t)((uintptr_t)y - (uintptr_t)(x + M * N));
    int close = gap >= 0 && gap < 4096;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = close; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
