// problem: row_sum
// right: one section waits for the other by an atomic flag with release and acquire
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        int ready = 0;
        float first = 0.0f;
#pragma omp parallel
        {
#pragma omp single nowait
            {
                for (int64_t n = 0; n < N / 2; n++) {
                    first += x[m * N + n];
                }
                __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
            }
#pragma omp single
            {
                float second = 0.0f;
                for (int64_t n = N / 2; n < N; n++) {
                    second += x[m * N + n];
                }
                while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
                }
                y[m] = first + second;
            }
        }
    }
}
