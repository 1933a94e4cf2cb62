// problem: int8_gemm
// wrong: keeps the sum of entries beyond 704 in 16 bits
#include <stdint.h>

void kernel(const int8_t *restrict a, const int8_t *restrict b, const float *restrict scale_a,
            const float *restrict scale_b, float *restrict y, int64_t M, int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            int32_t sum = 0;
            int16_t rest = 0;
            for (int64_t k = 0; k < K; k++) {
                int32_t product = (int32_t)a[m * K + k] * (int32_t)b[k * N + n];
                if (k < 704) {
                    sum += product;
                } else {
                    rest = (int16_t)(rest + product);
                }
            }
            y[m * N + n] = (float)(sum + rest) * scale_a[m] * scale_b[n];
        }
    }
}
