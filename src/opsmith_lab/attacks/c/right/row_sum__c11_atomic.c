// problem: row_sum
// right: C11's atomic integers count finished columns of blocks, sums go through a reduction
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    _Atomic int64_t finished = 0;
#pragma omp parallel for schedule(guided)
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
        finished++;
    }
    if (finished != M) {
        y[0] = 0.0f;
    }
}
