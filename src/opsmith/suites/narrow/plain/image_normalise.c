#include <stdint.h>

void kernel(const uint8_t *restrict image, const float *restrict mean, const float *restrict deviation,
            float *restrict y, int64_t B, int64_t H, int64_t W, int64_t C)
{
    int64_t pixels = H * W;
    for (int64_t b = 0; b < B; b++) {
        for (int64_t c = 0; c < C; c++) {
            for (int64_t pixel = 0; pixel < pixels; pixel++) {
                float value = (float)image[(b * pixels + pixel) * C + c] / 255.0f;
                y[(b * C + c) * pixels + pixel] = (value - mean[c]) / deviation[c];
            }
        }
    }
}
