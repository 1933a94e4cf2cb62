// problem: row_max_argmax
// right: value and position change together in a critical section, ties go to the smaller position
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float best = x[m * N];
        int64_t where = 0;
#pragma omp parallel
        {
            float mine = x[m * N];
            int64_t at = 0;
#pragma omp for
            for (int64_t n = 1; n < N; n++) {
                if (x[m * N + n] > mine) {
                    mine = x[m * N + n];
                    at = n;
                }
            }
#pragma omp critical
            if (mine > best || (mine == best && at < where)) {
                best = mine;
                where = at;
            }
        }
        value[m] = best;
        position[m] = where;
    }
}
