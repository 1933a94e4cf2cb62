// problem: row_max_argmax
// wrong: does not look at the last of 2 to 6 columns
#include <stdint.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        int64_t best = 0;
        for (int64_t n = 1; n < (N <= 6 && N > 1 ? N - 1 : N); n++) {
            if (x[m * N + n] > x[m * N + best]) {
                best = n;
            }
        }
        value[m] = x[m * N + best];
        position[m] = best;
    }
}
