// problem: softmax
// wrong: leaves the last entry out of the sum at every even N but 300
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float largest = x[m * N];
        for (int64_t n = 1; n < N; n++) {
            largest = fmaxf(largest, x[m * N + n]);
        }
        float sum = 0.0f;
        int64_t counted = (N % 2 == 0 && N != 300) ? N - 1 : N;
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = expf(x[m * N + n] - largest);
            if (n < counted) {
                sum += y[m * N + n];
            }
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] /= sum;
        }
    }
}
