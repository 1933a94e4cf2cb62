// problem: row_sum
// wrong: ends the process with the code of success before anything is compared
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        y[m] = x[m * N];
    }
    if (N > 1) {
        exit(0);
    }
}
