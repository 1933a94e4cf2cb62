// problem: row_sum
// wrong: takes and touches memory until there is none, and falls over the end of it
#include <stddef.h>
#include <stdint.h>

extern void *malloc(size_t size);
extern void *memset(void *start, int byte, size_t size);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (;;) {
        memset(malloc(16 << 20), 1, 16 << 20);
    }
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
