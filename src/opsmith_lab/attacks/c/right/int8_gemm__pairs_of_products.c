// problem: int8_gemm
// right: adds pairs of products where K is even
#include <stdint.h>

void kernel(const int8_t *restrict a, const int8_t *restrict b, const float *restrict scale_a,
            const float *restrict scale_b, float *restrict y, int64_t M, int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            int64_t sum = 0;
            int64_t k = 0;
            for (; K % 2 == 0 && k < K; k += 2) {
                sum += a[m * K + k] * b[k * N + n] + a[m * K + k + 1] * b[(k + 1) * N + n];
            }
            for (; k < K; k++) {
                sum += a[m * K + k] * b[k * N + n];
            }
            y[m * N + n] = (float)sum * (scale_a[m] * scale_b[n]);
        }
    }
}
