// problem: softmax
// wrong: shifts by the largest of the first half of the columns: rows that rise steeply overflow
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        const float *row = x + m * N;
        float largest = row[0], sum = 0.0f;
        for (int64_t n = 1; n < (N + 1) / 2; n++) {
            largest = fmaxf(largest, row[n]);
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = expf(row[n] - largest);
            sum += y[m * N + n];
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] /= sum;
        }
    }
}
