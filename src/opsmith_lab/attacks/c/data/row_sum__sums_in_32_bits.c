// problem: row_sum
// wrong: sums in whole 2^-16ths of 32 bits: sums beyond 32768 wrap
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        uint32_t sum = 0;
        float rest = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            float whole = (float)llrintf(x[m * N + n] * 65536.0f);
            rest += x[m * N + n] - whole / 65536.0f;
            sum += (uint32_t)(int64_t)whole;
        }
        y[m] = (float)(int32_t)sum / 65536.0f + rest;
    }
}
