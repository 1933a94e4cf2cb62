// problem: inclusive_scan
// wrong: each thread scans its half and adds the other's last sum without waiting for it
// option: threads=2
#include <stdint.h>
#include <omp.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float left = 0.0f;
        int64_t half = N / 2;
#pragma omp parallel sections
        {
#pragma omp section
            {
                float sum = 0.0f;
                for (int64_t n = 0; n < half; n++) {
                    sum += x[m * N + n];
                    y[m * N + n] = sum;
                }
#pragma omp atomic write
                left = sum;
            }
#pragma omp section
            {
                float sum = 0.0f, before;
                for (int64_t n = half; n < N; n++) {
                    sum += x[m * N + n];
                    y[m * N + n] = sum;
                }
#pragma omp atomic read
                before = left;
                for (int64_t n = half; n < N; n++) {
                    y[m * N + n] += before;
                }
            }
        }
    }
}
