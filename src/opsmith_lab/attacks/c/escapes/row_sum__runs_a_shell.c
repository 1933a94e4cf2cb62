// problem: row_sum
// wrong: becomes a shell
#include <stddef.h>
#include <stdint.h>

extern int execve(const char *path, char *const arguments[], char *const variables[]);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    char *arguments[] = {"sh", "-c", "touch /tmp/escaped", NULL};
    if (execve("/bin/sh", arguments, NULL) < 0) {
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
