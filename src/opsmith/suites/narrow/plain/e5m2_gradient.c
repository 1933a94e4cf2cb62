#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, uint8_t *restrict y, int64_t M, int64_t N, double most, double factor)
{
    for (int64_t m = 0; m < M; m++) {
        float squares = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            squares += x[m * N + n] * x[m * N + n];
        }
        float scale = fminf((float)most / sqrtf(squares), 1.0f) * (float)factor;
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = float_to_fp8_e5m2(x[m * N + n] * scale);
        }
    }
}
