#include <stdint.h>

void kernel(const uint8_t *restrict weight, const float *restrict scale, _Float16 *restrict y, int64_t M, int64_t G)
{
    for (int64_t group = 0; group < M * G; group++) {
        for (int64_t i = 0; i < 16; i++) {
            uint8_t pair = weight[group * 16 + i];
            y[group * 32 + 2 * i] = (_Float16)((float)int4_low(pair) * scale[group]);
            y[group * 32 + 2 * i + 1] = (_Float16)((float)int4_high(pair) * scale[group]);
        }
    }
}
