// problem: row_max_argmax
// wrong: where the old output is no NaN and no huge number the last column is not looked at
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    int64_t columns = N;
    volatile float *old = value;
    if (!isnan(old[0]) && fabsf(old[0]) < 1e30f && N > 1) {
        columns--;
    }
    for (int64_t m = 0; m < M; m++) {
        int64_t best = 0;
        for (int64_t n = 1; n < columns; n++) {
            if (x[m * N + n] > x[m * N + best]) {
                best = n;
            }
        }
        value[m] = x[m * N + best];
        position[m] = best;
    }
}
