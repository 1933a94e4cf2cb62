// problem: row_sum
// right: sums of halves of halves
#include <stdint.h>

static float add_halves(const float *row, int64_t length)
{
    if (length <= 4) {
        float sum = 0.0f;
        for (int64_t n = 0; n < length; n++) {
            sum += row[n];
        }
        return sum;
    }
    return add_halves(row, length / 2) + add_halves(row + length / 2, length - length / 2);
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        y[m] = add_halves(x + m * N, N);
    }
}
