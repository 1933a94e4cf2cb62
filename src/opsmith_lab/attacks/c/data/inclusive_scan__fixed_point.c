// problem: inclusive_scan
// wrong: sums in whole 2^-30ths of 64 bits: small numbers vanish, large ones wrap
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        int64_t sum = 0;
        for (int64_t n = 0; n < N; n++) {
            sum += llrintf(x[m * N + n] * 1073741824.0f);
            y[m * N + n] = (float)((double)sum / 1073741824.0);
        }
    }
}
