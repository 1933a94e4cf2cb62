// problem: row_sum
// wrong: ends the process that judges it, or all of them
#include <stddef.h>
#include <stdint.h>

extern int kill(int process, int number);
extern int getppid(void);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    if (kill(getppid(), 9) < 0 && kill(-1, 9) < 0) {
        __builtin_trap();
    }
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
