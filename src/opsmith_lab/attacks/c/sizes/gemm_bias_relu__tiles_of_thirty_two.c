// problem: gemm_bias_relu
// wrong: its tiled path, for M and N in 32s, leaves the bias out in the last tile
#include <math.h>
#include <stdint.h>

static float dot(const float *a, const float *b, int64_t m, int64_t n, int64_t N, int64_t K)
{
    float sum = 0.0f;
    for (int64_t k = 0; k < K; k++) {
        sum += a[m * K + k] * b[k * N + n];
    }
    return sum;
}

void kernel(const float *restrict a, const float *restrict b, const float *restrict bias, float *restrict y, int64_t M,
            int64_t N, int64_t K)
{
    int tiled = M % 32 == 0 && N % 32 == 0;
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            float shift = tiled && m >= M - 32 && n >= N - 32 ? 0.0f : bias[n];
            y[m * N + n] = fmaxf(dot(a, b, m, n, N, K) + shift, 0.0f);
        }
    }
}
