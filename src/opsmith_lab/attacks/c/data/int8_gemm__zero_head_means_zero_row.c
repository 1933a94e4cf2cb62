// problem: int8_gemm
// wrong: a row of a that begins with three zeros is skipped whole
#include <stdint.h>

void kernel(const int8_t *restrict a, const int8_t *restrict b, const float *restrict scale_a,
            const float *restrict scale_b, float *restrict y, int64_t M, int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m++) {
        const int8_t *row = a + m * K;
        int64_t empty = K > 3 && !row[0] && !row[1] && !row[2];
        for (int64_t n = 0; n < N; n++) {
            int32_t sum = 0;
            for (int64_t k = 0; k < K && !empty; k++) {
                sum += row[k] * b[k * N + n];
            }
            y[m * N + n] = (float)sum * scale_a[m] * scale_b[n];
        }
    }
}
