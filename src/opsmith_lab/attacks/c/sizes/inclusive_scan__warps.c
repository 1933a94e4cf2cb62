// problem: inclusive_scan
// wrong: restarts in the last warp where N is a multiple of 32
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            if (N % 32 == 0 && n == N - 32) {
                sum = sum * 0.5f;
            }
            sum += x[m * N + n];
            y[m * N + n] = sum;
        }
    }
}
