// problem: row_sum
// right: partial sums added in order by an ordered region
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float total = 0.0f;
#pragma omp parallel for ordered schedule(static, 1)
        for (int64_t c = 0; c < 4; c++) {
            float part = 0.0f;
            for (int64_t n = N * c / 4; n < N * (c + 1) / 4; n++) {
                part += x[m * N + n];
            }
#pragma omp ordered
            total += part;
        }
        y[m] = total;
    }
}
