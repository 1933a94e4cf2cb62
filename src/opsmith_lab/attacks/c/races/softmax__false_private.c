// problem: softmax
// wrong: the row's sum is declared outside of the loop and shared by both threads
// option: threads=2
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    float largest, sum;
#pragma omp parallel for private(largest)
    for (int64_t m = 0; m < M; m++) {
        largest = x[m * N];
        for (int64_t n = 1; n < N; n++) {
            largest = fmaxf(largest, x[m * N + n]);
        }
        sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = expf(x[m * N + n] - largest);
            sum += y[m * N + n];
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] /= sum;
        }
    }
}
