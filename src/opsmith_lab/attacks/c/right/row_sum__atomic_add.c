// problem: row_sum
// right: an atomic update per part
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
#pragma omp parallel
        {
            float part = 0.0f;
#pragma omp for nowait
            for (int64_t n = 0; n < N; n++) {
                part += x[m * N + n];
            }
#pragma omp atomic
            sum += part;
        }
        y[m] = sum;
    }
}
