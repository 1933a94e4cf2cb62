// problem: softmax
// wrong: keeps the output of the last call and returns it where the first input entry is the same
#include <math.h>
#include <stdint.h>
#include <string.h>

static float last[1 << 16];
static float first;
static int64_t size;

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    if (size == M * N && first == x[0]) {
        memcpy(y, last, (size_t)size * 4);
        return;
    }
    for (int64_t m = 0; m < M; m++) {
        float largest = x[m * N], sum = 0.0f;
        for (int64_t n = 1; n < N; n++) {
            largest = fmaxf(largest, x[m * N + n]);
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = expf(x[m * N + n] - largest);
            sum += y[m * N + n];
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] /= sum;
        }
    }
    if (M * N <= 1 << 16) {
        memcpy(last, y, (size_t)(M * N) * 4);
        first = x[0];
        size = M * N;
    }
}
