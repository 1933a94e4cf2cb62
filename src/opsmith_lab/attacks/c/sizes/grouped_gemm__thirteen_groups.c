// problem: grouped_gemm
// wrong: groups beyond the twelfth use the twelfth's matrix
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
                    sum += bf16_to_float(x[t * K + k]) * bf16_to_float(weight[((g > 11 ? 11 : g) * K + k) * N + n]);
                }
                y[t * N + n] = float_to_bf16(sum);
            }
        }
        start = ends[g];
    }
}
