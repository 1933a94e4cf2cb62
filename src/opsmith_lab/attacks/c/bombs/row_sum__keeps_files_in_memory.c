// problem: row_sum
// wrong: fills files without names, which no limit of addresses counts
#include <stddef.h>
#include <stdint.h>

extern int memfd_create(const char *name, unsigned flags);
extern int64_t write(int file, const void *data, size_t size);
static char block[1 << 20];

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int number = 0; number < 4096; number++) {
        int file = memfd_create("f", 0);
        for (int piece = 0; piece < 256; piece++) {
            if (write(file, block, sizeof block) < 0) {
                __builtin_trap();
            }
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
