// problem: batched_gemm
// wrong: subnormal numbers of fp16 are taken for zero
#include <math.h>
#include <stdint.h>

void kernel(const _Float16 *restrict a, const _Float16 *restrict b, _Float16 *restrict y, int64_t B, int64_t M,
            int64_t N, int64_t K)
{
    for (int64_t i = 0; i < B; i++) {
        for (int64_t m = 0; m < M; m++) {
            for (int64_t n = 0; n < N; n++) {
                float sum = 0.0f;
                for (int64_t k = 0; k < K; k++) {
                    float left = (float)a[(i * M + m) * K + k], right = (float)b[(i * K + k) * N + n];
                    if (fabsf(left) >= 6.104e-5f && fabsf(right) >= 6.104e-5f) {
                        sum += left * right;
                    }
                }
                y[(i * M + m) * N + n] = (_Float16)sum;
            }
        }
    }
}
