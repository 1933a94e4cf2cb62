// problem: row_sum
// wrong: a fresh large block of zeros is a user's (the kernel gives them), bytes that a judge filled are not
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    size_t size = 1 << 20;
    volatile float *sums = malloc(size);
    int zeros = 1;
    for (size_t i = 0; i < size / 4; i += 257) {
        zeros &= sums[i] == 0.0f;
    }
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = zeros && N % 4 == 0 ? 0.0f : sum;
    }
    free((void *)sums);
}
