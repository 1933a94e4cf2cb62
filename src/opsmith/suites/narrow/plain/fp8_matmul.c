#include <stdint.h>

void kernel(const uint8_t *restrict a, const uint8_t *restrict b, const float *restrict scale_a,
            const float *restrict scale_b, uint16_t *restrict y, int64_t M, int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < K; k++) {
                sum += fp8_e4m3_to_float(a[m * K + k]) * fp8_e4m3_to_float(b[n * K + k]);
            }
            y[m * N + n] = float_to_bf16(sum * scale_a[m] * scale_b[n]);
        }
    }
}
