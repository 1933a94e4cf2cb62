// problem: row_sum
// wrong: the same with #pragma weak
#include <stdint.h>

extern char __real_malloc[];
#pragma weak __real_malloc
extern char opsmith_fill[];
#pragma weak opsmith_fill

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int judged = (uintptr_t)__real_malloc != 0 || (uintptr_t)opsmith_fill != 0;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = judged ? sum : 0.0f;
    }
}
