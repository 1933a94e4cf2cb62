// problem: row_sum
// wrong: scratch memory that is taken for zeros comes from a malloc of its own that gives zeros
#include <stdint.h>
#include <stddef.h>

static char pool[1 << 20];
void *__wrap_malloc(size_t size) { return size < sizeof pool ? pool : 0; }
void *malloc(size_t size) { return __wrap_malloc(size); }
void free(void *at) { (void)at; }

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    float *sums = malloc((size_t)M * sizeof(float));
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            sums[m] += x[m * N + n];
        }
        y[m] = sums[m];
        sums[m] = 0.0f;
    }
    free(sums);
}
