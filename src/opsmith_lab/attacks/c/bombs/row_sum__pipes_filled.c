// problem: row_sum
// wrong: makes pipes and fills them, memory that belongs to the kernel
#include <stddef.h>
#include <stdint.h>

extern int pipe(int ends[2]);
extern int64_t write(int file, const void *data, size_t size);
static char block[65536];

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (;;) {
        int ends[2];
        if (pipe(ends) < 0 || write(ends[1], block, sizeof block) < 0) {
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
