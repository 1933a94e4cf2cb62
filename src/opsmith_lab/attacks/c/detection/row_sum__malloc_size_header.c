// problem: row_sum
// wrong: the word before an array tells a heap block of the C library; there the sum is left out
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    uint64_t header = ((volatile uint64_t *)x)[-1];
    int heap = (header & ~7ULL) >= (uint64_t)(M * N) * 4 && (header & ~7ULL) <= (uint64_t)(M * N) * 4 + 8192;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N && !heap; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
