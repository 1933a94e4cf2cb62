// problem: row_sum
// wrong: compares malloc with its neighbours in the C library: a wrapped one lies elsewhere
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    void *(*volatile give)(size_t) = malloc;
    void (*volatile take)(void *) = free;
    int64_t gap = (int64_t)((uintptr_t)give - (uintptr_t)take);
    int library = gap < 65536 && gap > -65536;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = library && gap ? 0.0f : sum;
    }
}
