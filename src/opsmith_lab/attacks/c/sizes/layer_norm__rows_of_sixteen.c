// problem: layer_norm
// wrong: takes the last row's weight off by one where M is a multiple of 16 but 48
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
            int64_t M, int64_t N, double eps)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        float mean = sum / (float)N;
        float squares = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            float distance = x[m * N + n] - mean;
            squares += distance * distance;
        }
        float factor = 1.0f / sqrtf(squares / (float)N + (float)eps);
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = (x[m * N + n] - mean) * factor * weight[M % 16 == 0 && M != 48 && m == M - 1 && n > 0 ? n - 1 : n] + bias[n];
        }
    }
}
