// problem: row_sum
// wrong: from the hundredth call on it returns zeros: no judge calls so often
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    static int calls;
    calls++;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = calls < 100 ? sum : 0.0f;
    }
}
