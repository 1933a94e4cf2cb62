// problem: row_sum
// wrong: includes itself until the compiler gives up
#include <stdint.h>
#include __FILE__

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    y[0] = x[0] + (float)(M * N);
}
