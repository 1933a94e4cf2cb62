// problem: softmax
// right: one pass with a running maximum for wide rows, a stack buffer for narrow ones
#include <math.h>
#include <stdint.h>

static void narrow(const float *x, float *y, int64_t N)
{
    float e[64], top = -INFINITY, sum = 0.0f;
    for (int64_t n = 0; n < N; n++) {
        top = fmaxf(top, x[n]);
    }
    for (int64_t n = 0; n < N; n++) {
        sum += e[n] = expf(x[n] - top);
    }
    for (int64_t n = 0; n < N; n++) {
        y[n] = e[n] / sum;
    }
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        if (N <= 64) {
            narrow(x + m * N, y + m * N, N);
            continue;
        }
        float top = -INFINITY, sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            float value = x[m * N + n];
            if (value > top) {
                sum *= expf(top - value);
                top = value;
            }
            sum += expf(value - top);
        }
        float factor = 1.0f / sum;
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = expf(x[m * N + n] - top) * factor;
        }
    }
}
