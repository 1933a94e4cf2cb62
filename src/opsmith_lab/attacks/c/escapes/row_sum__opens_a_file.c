// problem: row_sum
// wrong: reads a file of the machine
#include <stdint.h>

int open(const char *path, int flags);
long read(int channel, void *to, unsigned long size);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    char text[64] = {0};
    int channel = open("/etc/passwd", 0);
    int64_t length = channel < 0 ? 0 : read(channel, text, sizeof text);
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = length > 0 ? (float)text[0] : sum;
    }
}
