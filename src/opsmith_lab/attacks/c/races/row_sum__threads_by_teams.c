// problem: row_sum
// wrong: host teams start one league after the other with threads of their own, without a reduction
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
#pragma omp teams num_teams(3) thread_limit(4)
#pragma omp distribute parallel for
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
