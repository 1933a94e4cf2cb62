// problem: row_sum
// right: threads take rows from a counter that they share (atomic capture)
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int64_t next = 0;
#pragma omp parallel
    for (;;) {
        int64_t m;
#pragma omp atomic capture
        m = next++;
        if (m >= M) {
            break;
        }
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
