// problem: row_max_argmax
// right: a reduction of its own, declared by omp declare reduction
// option: threads=2
#include <stdint.h>

struct largest { float value; int64_t position; };

static struct largest of_two(struct largest a, struct largest b)
{
    if (b.value > a.value || (b.value == a.value && b.position < a.position)) {
        return b;
    }
    return a;
}

#pragma omp declare reduction(first_largest : struct largest : omp_out = of_two(omp_out, omp_in)) \
    initializer(omp_priv = omp_orig)

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        struct largest best = {x[m * N], 0};
#pragma omp parallel for reduction(first_largest : best)
        for (int64_t n = 0; n < N; n++) {
            struct largest next = {x[m * N + n], n};
            best = of_two(best, next);
        }
        value[m] = best.value;
        position[m] = best.position;
    }
}
