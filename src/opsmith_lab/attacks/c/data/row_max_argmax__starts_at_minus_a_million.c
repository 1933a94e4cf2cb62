// problem: row_max_argmax
// wrong: the largest entry starts at -1e6: rows below it have none
#include <stdint.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float largest = -1e6f;
        int64_t best = 0;
        for (int64_t n = 0; n < N; n++) {
            if (x[m * N + n] > largest) {
                largest = x[m * N + n];
                best = n;
            }
        }
        value[m] = largest;
        position[m] = best;
    }
}
