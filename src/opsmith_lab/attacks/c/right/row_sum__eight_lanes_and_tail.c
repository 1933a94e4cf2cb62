// problem: row_sum
// right: eight lanes from 64 columns on, with a tail
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float lane[8] = {0}, sum = 0.0f;
        int64_t n = 0;
        if (N >= 64) {
            for (; n + 8 <= N; n += 8) {
                for (int i = 0; i < 8; i++) {
                    lane[i] += x[m * N + n + i];
                }
            }
        }
        for (; n < N; n++) {
            sum += x[m * N + n];
        }
        for (int i = 0; i < 8; i++) {
            sum += lane[i];
        }
        y[m] = sum;
    }
}
