// problem: gemm_at
// wrong: a row of a that begins with a zero is skipped whole
#include <stdint.h>
#include <string.h>

void kernel(const float *restrict a, const float *restrict b, float *restrict y, int64_t M, int64_t N, int64_t K)
{
    memset(y, 0, (size_t)(M * N) * sizeof(float));
    for (int64_t k = 0; k < K; k++) {
        if (a[k * M] == 0.0f) {
            continue;
        }
        for (int64_t m = 0; m < M; m++) {
            for (int64_t n = 0; n < N; n++) {
                y[m * N + n] += a[k * M + m] * b[k * N + n];
            }
        }
    }
}
