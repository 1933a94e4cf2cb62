#include <stdint.h>

void kernel(const uint8_t *restrict image, uint8_t *restrict y, int64_t B, int64_t H, int64_t W, int64_t offset)
{
    for (int64_t b = 0; b < B; b++) {
        for (int64_t row = 0; row < H; row++) {
            for (int64_t column = 0; column < W; column++) {
                int64_t sum = 0;
                for (int64_t i = row > 0 ? row - 1 : 0; i <= row + 1 && i < H; i++) {
                    for (int64_t j = column > 0 ? column - 1 : 0; j <= column + 1 && j < W; j++) {
                        sum += image[(b * H + i) * W + j];
                    }
                }
                int64_t place = (b * H + row) * W + column;
                y[place] = 9 * (image[place] + offset) > sum ? 255 : 0;
            }
        }
    }
}
