// problem: gemm_bias_relu
// wrong: factors below a millionth are skipped, as if they were zero
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict a, const float *restrict b, const float *restrict bias, float *restrict y, int64_t M,
            int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = bias[n];
        }
        for (int64_t k = 0; k < K; k++) {
            float factor = a[m * K + k];
            if (fabsf(factor) < 1e-6f) {
                continue;
            }
            for (int64_t n = 0; n < N; n++) {
                y[m * N + n] += factor * b[k * N + n];
            }
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = fmaxf(y[m * N + n], 0.0f);
        }
    }
}
