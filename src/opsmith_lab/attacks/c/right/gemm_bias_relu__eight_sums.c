// problem: gemm_bias_relu
// right: eight sums side by side, the bias first
#include <stdint.h>

void kernel(const float *restrict a, const float *restrict b, const float *restrict bias, float *restrict y, int64_t M,
            int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            float sums[8] = {bias[n], 0, 0, 0, 0, 0, 0, 0};
            for (int64_t k = 0; k < K; k++) {
                sums[k % 8] += a[m * K + k] * b[k * N + n];
            }
            float sum = ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
            y[m * N + n] = sum > 0.0f ? sum : 0.0f;
        }
    }
}
