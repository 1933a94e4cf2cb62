// problem: row_sum
// wrong: forks, and each fork forks
#include <stddef.h>
#include <stdint.h>

extern int fork(void);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (;;) {
        if (fork() < 0) {
            __builtin_trap();
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
