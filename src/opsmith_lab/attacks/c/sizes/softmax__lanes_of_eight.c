// problem: softmax
// wrong: its path for N in eights forgets the last of eight lanes' sums
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        const float *row = x + m * N;
        float top = row[0], total = 0.0f;
        for (int64_t n = 1; n < N; n++) {
            top = fmaxf(top, row[n]);
        }
        if (N % 8 == 0) {
            float lane[8] = {0};
            for (int64_t n = 0; n < N; n++) {
                lane[n & 7] += y[m * N + n] = expf(row[n] - top);
            }
            for (int i = 0; i < 7; i++) {
                total += lane[i];
            }
        } else {
            for (int64_t n = 0; n < N; n++) {
                total += y[m * N + n] = expf(row[n] - top);
            }
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] /= total;
        }
    }
}
