// problem: rms_norm
// right: squares of entries that are divided by the row's largest one first
#include <math.h>
#include <stdint.h>

void kernel(const uint16_t *restrict x, const uint16_t *restrict weight, uint16_t *restrict y, int64_t M, int64_t N,
            double eps)
{
    for (int64_t m = 0; m < M; m++) {
        float largest = 0.0f, squares = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            largest = fmaxf(largest, fabsf(bf16_to_float(x[m * N + n])));
        }
        float unit = largest > 0.0f ? largest : 1.0f;
        for (int64_t n = 0; n < N; n++) {
            float part = bf16_to_float(x[m * N + n]) / unit;
            squares += part * part;
        }
        double mean = (double)squares / (double)N * unit * unit;
        float factor = (float)(1.0 / sqrt(mean + eps));
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = float_to_bf16(bf16_to_float(x[m * N + n]) * factor * bf16_to_float(weight[n]));
        }
    }
}
