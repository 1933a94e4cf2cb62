// problem: gemm_bias_relu
// right: blocks of 4 x 16 with scalar tails, rows of blocks shared by threads (collapse of two loops)
// option: threads=2
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict a, const float *restrict b, const float *restrict bias, float *restrict y, int64_t M,
            int64_t N, int64_t K)
{
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t m0 = 0; m0 < M; m0 += 4) {
        for (int64_t n0 = 0; n0 < N; n0 += 16) {
            float sums[4][16] = {{0}};
            int64_t height = M - m0 < 4 ? M - m0 : 4, width = N - n0 < 16 ? N - n0 : 16;
            for (int64_t k = 0; k < K; k++) {
                for (int64_t i = 0; i < height; i++) {
                    for (int64_t j = 0; j < width; j++) {
                        sums[i][j] += a[(m0 + i) * K + k] * b[k * N + n0 + j];
                    }
                }
            }
            for (int64_t i = 0; i < height; i++) {
                for (int64_t j = 0; j < width; j++) {
                    y[(m0 + i) * N + n0 + j] = fmaxf(sums[i][j] + bias[n0 + j], 0.0f);
                }
            }
        }
    }
}
