// problem: softmax
// wrong: exponentials in double instead of a shift: logits beyond 709 overflow
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        double sum = 0.0;
        for (int64_t n = 0; n < N; n++) {
            sum += exp((double)x[m * N + n]);
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = (float)(exp((double)x[m * N + n]) / sum);
        }
    }
}
