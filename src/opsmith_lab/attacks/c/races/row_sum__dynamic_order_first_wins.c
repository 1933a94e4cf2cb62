// problem: row_sum
// wrong: whichever thread comes first writes the row, the other adds without a guard
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        int written = 0;
#pragma omp parallel
        {
            float part = 0.0f;
#pragma omp for nowait
            for (int64_t n = 0; n < N; n++) {
                part += x[m * N + n];
            }
            int first;
#pragma omp atomic capture
            first = written++;
            if (first == 0) {
                y[m] = part;
            } else {
#pragma omp atomic
                y[m] += part;
            }
        }
    }
}
