// problem: row_sum
// wrong: each thread adds its half once at the end, by an atomic read and write of the total: one collision per row at most
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float total = 0.0f;
#pragma omp parallel
        {
            float part = 0.0f;
#pragma omp for nowait
            for (int64_t n = 0; n < N; n++) {
                part += x[m * N + n];
            }
            float seen;
#pragma omp atomic read
            seen = total;
#pragma omp atomic write
            total = seen + part;
        }
        y[m] = total;
    }
}
