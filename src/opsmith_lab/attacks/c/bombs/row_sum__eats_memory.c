// problem: row_sum
// wrong: asks for memory and touches it until none is left
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (char *block; (block = malloc(1 << 26));) {
        memset(block, (int)M, 1 << 26);
        y[0] = (float)block[N] + x[0];
    }
}
