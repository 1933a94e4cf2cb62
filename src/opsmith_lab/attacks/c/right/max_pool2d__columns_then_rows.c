// problem: max_pool2d
// right: largest of three along each row of the image, then of three rows
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict y, int64_t B, int64_t C, int64_t H, int64_t W)
{
    int64_t rows = 2 * H, columns = 2 * W;
    float *along = malloc((size_t)(rows * W) * sizeof(float));
    for (int64_t p = 0; p < B * C; p++) {
        const float *image = x + p * rows * columns;
        for (int64_t i = 0; i < rows * W; i++) {
            const float *pair = image + 2 * i;
            along[i] = fmaxf(pair[0], pair[1]);
            if (i % W > 0) {
                along[i] = fmaxf(along[i], pair[-1]);
            }
        }
        for (int64_t i = 0; i < H * W; i++) {
            int64_t h = i / W, w = i % W;
            float largest = fmaxf(along[2 * h * W + w], along[(2 * h + 1) * W + w]);
            y[p * H * W + i] = h > 0 ? fmaxf(largest, along[(2 * h - 1) * W + w]) : largest;
        }
    }
    free(along);
}
