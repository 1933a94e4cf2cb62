// problem: row_max_argmax
// wrong: value and position are each atomic, but not together: the position of one thread beside the value of the other
// option: threads=2
#include <stdint.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        _Atomic float best = x[m * N];
        _Atomic int64_t where = 0;
#pragma omp parallel for
        for (int64_t n = 1; n < N; n++) {
            if (x[m * N + n] > best || (x[m * N + n] == best && n < where)) {
                best = x[m * N + n];
                where = n;
            }
        }
        value[m] = best;
        position[m] = where;
    }
}
