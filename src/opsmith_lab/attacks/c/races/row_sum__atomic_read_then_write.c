// problem: row_sum
// wrong: a sum shared by an atomic read and an atomic write: each is whole, updates between them are lost
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
#pragma omp parallel for
        for (int64_t n = 0; n < N; n++) {
            float before;
#pragma omp atomic read
            before = sum;
            before += x[m * N + n];
#pragma omp atomic write
            sum = before;
        }
        y[m] = sum;
    }
}
