// problem: row_sum
// wrong: leaves a process in a session of its own that outlives the verdict
#include <stddef.h>
#include <stdint.h>

extern int fork(void);
extern int setsid(void);
extern unsigned sleep(unsigned seconds);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int child = fork();
    if (child < 0) {
        __builtin_trap();
    }
    if (child == 0) {
        setsid();
        if (fork() == 0) {
            sleep(3600);
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
