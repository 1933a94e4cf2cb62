// problem: row_sum
// wrong: writes each result into the output of the call before, which is read later
#include <stdint.h>

static float *before;

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    float *to = before ? before : y;
    before = y;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        to[m] = sum;
    }
}
