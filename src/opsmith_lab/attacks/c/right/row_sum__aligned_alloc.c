// problem: row_sum
// right: aligned scratch memory from aligned_alloc, of which only what was written is read
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    size_t bytes = ((size_t)M * sizeof(float) + 63) / 64 * 64;
    float *sums = aligned_alloc(64, bytes);
    for (int64_t m = 0; m < M; m++) {
        sums[m] = x[m * N];
        for (int64_t n = 1; n < N; n++) {
            sums[m] += x[m * N + n];
        }
    }
    for (int64_t m = 0; m < M; m++) {
        y[m] = sums[m];
    }
    free(sums);
}
