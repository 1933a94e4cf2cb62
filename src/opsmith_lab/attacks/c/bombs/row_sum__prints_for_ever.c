// problem: row_sum
// wrong: prints without end
#include <stdint.h>

int puts(const char *text);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    while (puts("0123456789012345678901234567890123456789012345678901234567890123456789") >= 0) {
        y[M - 1] = x[N - 1];
    }
}
