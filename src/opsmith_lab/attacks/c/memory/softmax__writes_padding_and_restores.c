// problem: softmax
// wrong: writes whole vectors behind the output's end and puts the old bytes back
#include <math.h>
#include <stdint.h>
#include <string.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    float kept[4];
    memcpy(kept, y + M * N, sizeof kept);
    for (int64_t m = 0; m < M; m++) {
        float largest = x[m * N], sum = 0.0f;
        for (int64_t n = 1; n < N; n++) {
            largest = fmaxf(largest, x[m * N + n]);
        }
        for (int64_t n = 0; n < N; n++) {
            sum += expf(x[m * N + n] - largest);
        }
        for (int64_t n = 0; n < N; n += 4) {
            for (int64_t i = 0; i < 4; i++) {
                y[m * N + n + i] = n + i < N ? expf(x[m * N + n + i] - largest) / sum : 0.0f;
            }
        }
    }
    memcpy(y + M * N, kept, sizeof kept);
}
