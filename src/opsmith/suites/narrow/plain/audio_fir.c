#include <stdint.h>

void kernel(const int16_t *restrict x, const int16_t *restrict taps, int16_t *restrict y, int64_t C, int64_t T,
            int64_t L)
{
    for (int64_t c = 0; c < C; c++) {
        for (int64_t t = 0; t < T; t++) {
            int64_t sum = 16384;
            for (int64_t i = 0; i < L && i <= t; i++) {
                sum += (int64_t)taps[i] * x[c * T + t - i];
            }
            sum >>= 15;
            y[c * T + t] = (int16_t)(sum < -32768 ? -32768 : sum > 32767 ? 32767 : sum);
        }
    }
}
