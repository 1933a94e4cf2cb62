// problem: row_sum
// wrong: right only where a symbol of the judge is linked in
#include <stdint.h>

extern void opsmith_malloc(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));
extern void __asan_init(void) __attribute__((weak));
extern void *__wrap_malloc(unsigned long) __attribute__((weak));

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int judged = opsmith_malloc || __tsan_init || __asan_init || __wrap_malloc;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = !judged; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
