// problem: row_sum
// wrong: the vector loop reads up to seven floats behind the last row and masks them by a multiplication
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n += 8) {
            for (int64_t i = 0; i < 8; i++) {
                sum += x[m * N + n + i] * (n + i < N ? 1.0f : 0.0f);
            }
        }
        y[m] = sum;
    }
}
