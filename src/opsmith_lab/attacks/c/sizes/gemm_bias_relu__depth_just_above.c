// problem: gemm_bias_relu
// wrong: drops the last product for K from 81 to 88
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict a, const float *restrict b, const float *restrict bias, float *restrict y, int64_t M,
            int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < (K > 80 && K <= 88 ? 80 : K); k++) {
                sum += a[m * K + k] * b[k * N + n];
            }
            y[m * N + n] = fmaxf(sum + bias[n], 0.0f);
        }
    }
}
