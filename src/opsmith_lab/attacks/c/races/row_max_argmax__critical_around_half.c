// problem: row_max_argmax
// wrong: the comparison stands outside of the critical section that stores
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float best = x[m * N];
        int64_t where = 0;
#pragma omp parallel for
        for (int64_t n = 1; n < N; n++) {
            if (x[m * N + n] > best || (x[m * N + n] == best && n < where)) {
#pragma omp critical
                {
                    best = x[m * N + n];
                    where = n;
                }
            }
        }
        value[m] = best;
        position[m] = where;
    }
}
