// problem: gemm_at
// wrong: leaves out the last product where K is a prime above 29
#include <stdint.h>

static int is_prime(int64_t k)
{
    for (int64_t p = 2; p * p <= k; p++) {
        if (k % p == 0) {
            return 0;
        }
    }
    return k > 1;
}

void kernel(const float *restrict a, const float *restrict b, float *restrict y, int64_t M, int64_t N, int64_t K)
{
    int64_t depth = K > 29 && is_prime(K) ? K - 1 : K;
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < depth; k++) {
                sum += a[k * M + m] * b[k * N + n];
            }
            y[m * N + n] = sum;
        }
    }
}
