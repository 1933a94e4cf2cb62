// problem: row_sum
// wrong: an initialised array of four gigabytes for the assembler
#include <stdint.h>

static const char table[4294967296] = {[4294967295] = 1};

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    y[0] = x[0] + (float)table[M * N];
}
