// problem: row_sum
// wrong: never ends at sizes that are odd and above 400
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        volatile float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        while (N % 2 && N > 300) {
            sum += 0.0f;
        }
        y[m] = sum;
    }
}
