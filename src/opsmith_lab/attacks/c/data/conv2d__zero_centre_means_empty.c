// problem: conv2d
// wrong: windows with a zero in the middle are taken to be empty
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
            int64_t B, int64_t C, int64_t O, int64_t H, int64_t W)
{
    int64_t rows = 2 * H, columns = 2 * W;
    for (int64_t i = 0; i < B * O * H * W; i++) {
        int64_t w = i % W, h = i / W % H, o = i / (W * H) % O, b = i / (W * H * O);
        float sum = bias[o];
        for (int64_t c = 0; c < C; c++) {
            const float *image = x + (b * C + c) * rows * columns, *filter = weight + (o * C + c) * 9;
            if (image[2 * h * columns + 2 * w] == 0.0f) {
                continue;
            }
            for (int64_t row = h ? 2 * h - 1 : 0; row <= 2 * h + 1; row++) {
                for (int64_t column = w ? 2 * w - 1 : 0; column <= 2 * w + 1; column++) {
                    sum += image[row * columns + column] * filter[(row - 2 * h + 1) * 3 + column - 2 * w + 1];
                }
            }
        }
        y[i] = sum;
    }
}
