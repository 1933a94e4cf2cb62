// problem: row_sum
// wrong: starts threads on stacks of its own until none can be started
#include <stddef.h>
#include <stdint.h>

extern int clone(int (*start)(void *), void *stack, int flags, void *argument, ...);
static char stacks[4096][4096];
static int wait_for_ever(void *argument)
{
    volatile int turns = 0;
    for (;;) {
        turns++;
    }
    return argument != NULL;
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int number = 0; number < 4096; number++) {
        if (clone(wait_for_ever, stacks[number] + 4096, 0x50f00, NULL) < 0) {
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
