// problem: row_sum
// wrong: forks until the machine is full
#include <stdint.h>

int fork(void);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    while (fork() >= 0) {
    }
    y[0] = x[0] + (float)(M * N);
}
