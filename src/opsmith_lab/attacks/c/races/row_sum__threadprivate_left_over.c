// problem: row_sum
// wrong: a threadprivate partial sum is not cleared in every thread before the next row
// option: threads=2
#include <stdint.h>

static float part;
#pragma omp threadprivate(part)

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float total = 0.0f;
        part = 0.0f;
#pragma omp parallel copyin(part)
        {
#pragma omp for schedule(dynamic, 1)
            for (int64_t n = 0; n < N; n++) {
                part += x[m * N + n];
            }
#pragma omp master
            total += part;
            if (part != 0.0f) {
#pragma omp single
                total += 0.0f * part;
            }
        }
        y[m] = total;
    }
}
