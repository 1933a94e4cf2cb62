// problem: row_sum
// wrong: the grown part of a reallocated block is taken for zeros
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    float *sums = calloc(8, sizeof(float));
    sums = realloc(sums, (size_t)(M + 8) * sizeof(float));
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            sums[m] += x[m * N + n];
        }
        y[m] = sums[m];
    }
    free(sums);
}
