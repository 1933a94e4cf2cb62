#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, const float *restrict scale, const float *restrict shift, float *restrict y,
            int64_t B, int64_t C, int64_t L)
{
    for (int64_t b = 0; b < B; b++) {
        for (int64_t c = 0; c < C; c++) {
            for (int64_t l = 0; l < L; l++) {
                float z = x[(b * C + c) * L + l] * scale[b * C + c] + shift[b * C + c];
                y[(b * C + c) * L + l] = z / (1.0f + expf(-z));
            }
        }
    }
}
