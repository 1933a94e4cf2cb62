// problem: row_sum
// wrong: starts a thousand threads
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int count = 0;
#pragma omp parallel num_threads(1000)
    {
#pragma omp atomic
        count++;
    }
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum * (float)(count > 0);
    }
}
