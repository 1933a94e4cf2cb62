// problem: max_pool2d
// wrong: looks at two columns of each window where W is even but 20
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t B, int64_t C, int64_t H, int64_t W)
{
    int64_t rows = 2 * H, columns = 2 * W;
    for (int64_t p = 0; p < B * C; p++) {
        for (int64_t h = 0; h < H; h++) {
            for (int64_t w = 0; w < W; w++) {
                float largest = -INFINITY;
                for (int64_t i = 0; i < 3; i++) {
                    for (int64_t j = 0; j < (W % 2 == 0 && W != 20 ? 2 : 3); j++) {
                        int64_t row = 2 * h + i - 1, column = 2 * w + j - 1;
                        if (row >= 0 && row < rows && column >= 0 && column < columns) {
                            largest = fmaxf(largest, x[(p * rows + row) * columns + column]);
                        }
                    }
                }
                y[(p * H + h) * W + w] = largest;
            }
        }
    }
}
