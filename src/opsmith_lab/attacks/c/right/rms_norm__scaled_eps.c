// problem: rms_norm
// right: adds N times eps before the division, and one column apart
#include <math.h>
#include <stdint.h>

void kernel(const uint16_t *restrict x, const uint16_t *restrict weight, uint16_t *restrict y, int64_t M, int64_t N,
            double eps)
{
    for (int64_t m = 0; m < M; m++) {
        float squares = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            float value = bf16_to_float(x[m * N + n]);
            squares += value * value;
        }
        float factor = sqrtf((float)N / (squares + (float)((double)N * eps)));
        for (int64_t n = 0; n < N; n++) {
            float value = bf16_to_float(x[m * N + n]) * factor;
            y[m * N + n] = float_to_bf16(value * bf16_to_float(weight[n]));
        }
    }
}
