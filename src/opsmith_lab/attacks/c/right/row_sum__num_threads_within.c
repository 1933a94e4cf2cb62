// problem: row_sum
// right: asks for as many threads as there are, or fewer where there is little to do
// option: threads=2
#include <omp.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int team = M * N < 1024 ? 1 : omp_get_max_threads();
#pragma omp parallel for num_threads(team) if (M > 1)
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
