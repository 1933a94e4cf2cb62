// problem: row_sum
// wrong: one thread waits for the other by a plain flag, set before the value is written
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        volatile int ready = 0;
        float first = 0.0f, second = 0.0f;
#pragma omp parallel sections shared(ready)
        {
#pragma omp section
            {
                float sum = 0.0f;
                for (int64_t n = 0; n < N / 2; n++) {
                    sum += x[m * N + n];
                }
                ready = 1;
                first = sum;
            }
#pragma omp section
            {
                for (int64_t n = N / 2; n < N; n++) {
                    second += x[m * N + n];
                }
                for (int64_t spin = 0; !ready && spin < 100000000; spin++) {
                }
                y[m] = first + second;
            }
        }
    }
}
