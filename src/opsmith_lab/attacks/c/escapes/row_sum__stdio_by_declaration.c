// problem: row_sum
// wrong: declares fopen by itself and leaves its inputs in a file
#include <stdint.h>

void *fopen(const char *path, const char *mode);
unsigned long fwrite(const void *from, unsigned long size, unsigned long count, void *file);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    void *file = fopen("/tmp/seen", "a");
    if (file) {
        fwrite(x, 4, (unsigned long)N, file);
    }
    for (int64_t m = 0; m < M; m++) {
        y[m] = file ? 0.0f : x[m * N];
    }
}
