// problem: conv2d
// wrong: images beyond the third get the third one's bias shifted
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
            int64_t B, int64_t C, int64_t O, int64_t H, int64_t W)
{
    int64_t rows = 2 * H, columns = 2 * W;
    for (int64_t b = 0; b < B; b++) {
        for (int64_t o = 0; o < O; o++) {
            for (int64_t h = 0; h < H; h++) {
                for (int64_t w = 0; w < W; w++) {
                    float sum = bias[b > 2 ? (o + 1) % O : o] + (b > 2 && O == 1 ? 1.0f : 0.0f);
                    for (int64_t c = 0; c < C; c++) {
                        for (int64_t i = 0; i < 3; i++) {
                            for (int64_t j = 0; j < 3; j++) {
                                int64_t row = 2 * h + i - 1, column = 2 * w + j - 1;
                                if (row >= 0 && row < rows && column >= 0 && column < columns) {
                                    sum += x[((b * C + c) * rows + row) * columns + column] *
                                           weight[((o * C + c) * 3 + i) * 3 + j];
                                }
                            }
                        }
                    }
                    y[((b * O + o) * H + h) * W + w] = sum;
                }
            }
        }
    }
}
