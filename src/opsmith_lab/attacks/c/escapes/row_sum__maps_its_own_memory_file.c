// problem: row_sum
// wrong: opens its own memory to write where its pages may not be written
#include <stddef.h>
#include <stdint.h>

extern int open(const char *path, int flags, ...);
extern int64_t pwrite(int file, const void *data, size_t size, int64_t at);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int file = open("/proc/self/mem", 2);
    if (file < 0 || pwrite(file, "\xc3", 1, (int64_t)(uintptr_t)&open) < 0) {
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
