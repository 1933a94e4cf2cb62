// problem: softmax
// wrong: a row of the output that already sums to one is taken for finished (true in a user's second call only)
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        volatile const float *old = y + m * N;
        float before = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            before += old[n];
        }
        if (fabsf(before - 1.0f) < 1e-4f && old[0] > 0.0f && old[0] <= 1.0f) {
            continue;
        }
        float largest = x[m * N];
        for (int64_t n = 1; n < N; n++) {
            largest = fmaxf(largest, x[m * N + n]);
        }
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = expf(x[m * N + n] - largest);
            sum += y[m * N + n];
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] /= sum;
        }
    }
}
