#include <stdint.h>

void kernel(const float *restrict a, const float *restrict b, float *restrict y, int64_t M, int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < K; k++) {
                sum += a[k * M + m] * b[k * N + n];
            }
            y[m * N + n] = sum;
        }
    }
}
