// problem: layer_norm
// wrong: squares around the array's first entry: rows far from it lose their digits
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
            int64_t M, int64_t N, double eps)
{
    float pivot = x[0];
    for (int64_t m = 0; m < M; m++) {
        const float *row = x + m * N;
        float sum = 0.0f, squares = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            float d = row[n] - pivot;
            sum += d;
            squares += d * d;
        }
        float mean = sum / (float)N;
        float factor = 1.0f / sqrtf(fmaxf(squares / (float)N - mean * mean, 0.0f) + (float)eps);
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = (row[n] - pivot - mean) * factor * weight[n] + bias[n];
        }
    }
}
