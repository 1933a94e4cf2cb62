// problem: row_sum
// wrong: maps shared pages, which lie in no heap, and touches them until there are none
#include <stddef.h>
#include <stdint.h>

extern void *mmap(void *start, size_t size, int protection, int flags, int file, int64_t at);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (;;) {
        volatile char *pages = mmap(NULL, 64 << 20, 3, 0x21, -1, 0);
        for (int64_t at = 0; at < 64 << 20; at += 4096) {
            pages[at] = 1;
        }
    }
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
