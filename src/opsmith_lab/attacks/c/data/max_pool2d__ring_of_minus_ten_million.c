// problem: max_pool2d
// wrong: the ring holds -1e7: it wins over what lies below
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t B, int64_t C, int64_t H, int64_t W)
{
    int64_t rows = 2 * H, columns = 2 * W;
    for (int64_t p = 0; p < B * C; p++) {
        for (int64_t h = 0; h < H; h++) {
            for (int64_t w = 0; w < W; w++) {
                float largest = -1e7f;
                for (int64_t row = h ? 2 * h - 1 : 0; row <= 2 * h + 1; row++) {
                    for (int64_t column = w ? 2 * w - 1 : 0; column <= 2 * w + 1; column++) {
                        float next = x[(p * rows + row) * columns + column];
                        largest = next > largest ? next : largest;
                    }
                }
                y[(p * H + h) * W + w] = largest;
            }
        }
    }
}
