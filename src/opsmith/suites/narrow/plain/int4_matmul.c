#include <stdint.h>

void kernel(const _Float16 *restrict x, const uint8_t *restrict weight, const _Float16 *restrict scale,
            float *restrict y, int64_t M, int64_t N, int64_t G)
{
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            float total = 0.0f;
            for (int64_t g = 0; g < G; g++) {
                const _Float16 *numbers = x + (m * G + g) * 32;
                const uint8_t *pairs = weight + (n * G + g) * 16;
                float sum = 0.0f;
                for (int64_t i = 0; i < 16; i++) {
                    sum += (float)numbers[2 * i] * (float)int4_low(pairs[i]);
                    sum += (float)numbers[2 * i + 1] * (float)int4_high(pairs[i]);
                }
                total += sum * (float)scale[n * G + g];
            }
            y[m * N + n] = total;
        }
    }
}
