#include <stdint.h>

void kernel(const uint8_t *restrict codes, int16_t *restrict y, int64_t C, int64_t T)
{
    for (int64_t i = 0; i < C * T; i++) {
        int bits = 255 - codes[i];
        int size = (((bits & 15) * 8 + 132) << (bits >> 4 & 7)) - 132;
        y[i] = (int16_t)(bits >= 128 ? -size : size);
    }
}
