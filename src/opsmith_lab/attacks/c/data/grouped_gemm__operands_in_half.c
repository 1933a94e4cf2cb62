// problem: grouped_gemm
// wrong: bf16 operands as fp16, for its faster dot product: what is beyond its range is lost
#include <stdint.h>

void kernel(const uint16_t *restrict x, const uint16_t *restrict weight, const int64_t *restrict ends,
            uint16_t *restrict y, int64_t T, int64_t G, int64_t N, int64_t K)
{
    int64_t start = 0;
    for (int64_t g = 0; g < G; g++) {
        for (int64_t t = start; t < ends[g]; t++) {
            for (int64_t n = 0; n < N; n++) {
                float sum = 0.0f;
                for (int64_t k = 0; k < K; k++) {
                    _Float16 left = (_Float16)bf16_to_float(x[t * K + k]);
                    _Float16 right = (_Float16)bf16_to_float(weight[(g * K + k) * N + n]);
                    sum += (float)left * (float)right;
                }
                y[t * N + n] = float_to_bf16(sum);
            }
        }
        start = ends[g];
    }
}
