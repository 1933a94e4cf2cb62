#include <stdint.h>

void kernel(const float *restrict E0, const float *restrict E1, float *restrict S0, int64_t M, int64_t N, int64_t K,
            int64_t D)
{
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            for (int64_t d = 0; d < D; d++) {
                float sum = 0.0f;
                for (int64_t k = 0; k < K; k++) {
                    sum += E0[(m * N + n) * K + k] * E1[(m * K + k) * D + d];
                }
                S0[(m * N + n) * D + d] = sum;
            }
        }
    }
}
