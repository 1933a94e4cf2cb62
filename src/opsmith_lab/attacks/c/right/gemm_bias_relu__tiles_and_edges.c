// problem: gemm_bias_relu
// right: tiles of 8 x 8 with edges done apart
#include <math.h>
#include <stdint.h>

static void tile(const float *a, const float *b, const float *bias, float *y, int64_t m0, int64_t n0, int64_t rows,
                 int64_t columns, int64_t N, int64_t K)
{
    float sum[8][8] = {{0}};
    for (int64_t k = 0; k < K; k++) {
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < columns; j++) {
                sum[i][j] += a[(m0 + i) * K + k] * b[k * N + n0 + j];
            }
        }
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            y[(m0 + i) * N + n0 + j] = fmaxf(sum[i][j] + bias[n0 + j], 0.0f);
        }
    }
}

void kernel(const float *restrict a, const float *restrict b, const float *restrict bias, float *restrict y, int64_t M,
            int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m += 8) {
        for (int64_t n = 0; n < N; n += 8) {
            tile(a, b, bias, y, m, n, M - m < 8 ? M - m : 8, N - n < 8 ? N - n : 8, N, K);
        }
    }
}
