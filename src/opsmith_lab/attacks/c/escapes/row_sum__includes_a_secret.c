// problem: row_sum
// wrong: makes the compiler quote a file of the machine in its messages
#include <stdint.h>
#include "/etc/passwd"

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    y[0] = x[0] + (float)(M * N);
}
