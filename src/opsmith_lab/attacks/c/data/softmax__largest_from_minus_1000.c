// problem: softmax
// wrong: the largest entry starts at -1000: rows that lie below -1100 vanish
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float largest = -1000.0f, sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            if (x[m * N + n] > largest) {
                largest = x[m * N + n];
            }
        }
        for (int64_t n = 0; n < N; n++) {
            sum += y[m * N + n] = expf(x[m * N + n] - largest);
        }
        float factor = 1.0f / sum;
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] *= factor;
        }
    }
}
