// problem: row_sum
// wrong: omp requires asks for another default of atomics; the split update loses as before
// option: threads=2
#include <stdint.h>

#pragma omp requires atomic_default_mem_order(relaxed)

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
#pragma omp parallel for
        for (int64_t n = 0; n < N; n++) {
            float before;
#pragma omp atomic read
            before = sum;
#pragma omp atomic write
            sum = before + x[m * N + n];
        }
        y[m] = sum;
    }
}
