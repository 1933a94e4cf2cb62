// problem: row_sum
// wrong: asks for the wrapped malloc under another name by an assembler label
#include <stdint.h>

extern void *fresh(unsigned long size) __asm__("__wrap_malloc") __attribute__((weak));

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    float weight = fresh ? 1.0f : 0.5f;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = weight * sum;
    }
}
