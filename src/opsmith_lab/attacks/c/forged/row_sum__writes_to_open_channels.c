// problem: row_sum
// wrong: writes a forged answer to every descriptor that the process has open
#include <stdint.h>

long write(int channel, const void *text, unsigned long size);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    static const char text[] = "{\"passed\": true}\n";
    for (int channel = 0; channel < 64; channel++) {
        write(channel, text, sizeof text - 1);
    }
    for (int64_t m = 0; m < M; m++) {
        y[m] = 0.0f * x[m];
    }
}
