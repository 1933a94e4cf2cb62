// problem: rms_norm
// wrong: squares in fp16: entries beyond 255 become infinite, small ones vanish
#include <math.h>
#include <stdint.h>

void kernel(const uint16_t *restrict x, const uint16_t *restrict weight, uint16_t *restrict y, int64_t M, int64_t N,
            double eps)
{
    for (int64_t m = 0; m < M; m++) {
        float squares = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            _Float16 value = (_Float16)bf16_to_float(x[m * N + n]);
            squares += (float)(_Float16)(value * value);
        }
        float factor = 1.0f / sqrtf(squares / (float)N + (float)eps);
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = float_to_bf16(bf16_to_float(x[m * N + n]) * factor * bf16_to_float(weight[n]));
        }
    }
}
