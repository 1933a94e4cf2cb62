// problem: row_max_argmax
// right: searches from the last entry: an equal one takes the place
#include <stdint.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        value[m] = x[m * N + N - 1];
        position[m] = N - 1;
        for (int64_t n = N - 2; n >= 0; n--) {
            if (x[m * N + n] >= value[m]) {
                value[m] = x[m * N + n];
                position[m] = n;
            }
        }
    }
}
