#include <stdint.h>

void kernel(const uint8_t *restrict x, const float *restrict scale, uint16_t *restrict y, int64_t A, int64_t B)
{
    for (int64_t row = 0; row < 16 * A; row++) {
        for (int64_t column = 0; column < 16 * B; column++) {
            float factor = scale[row / 16 * B + column / 16];
            y[row * 16 * B + column] = float_to_bf16(fp8_e4m3_to_float(x[row * 16 * B + column]) * factor);
        }
    }
}
