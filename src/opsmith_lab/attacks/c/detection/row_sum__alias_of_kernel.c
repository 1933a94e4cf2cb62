// problem: row_sum
// wrong: the name that a user's header links to is an alias of another function, which gives zeros where the output began as zeros
#include <stdint.h>

void quick(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int64_t columns = ((volatile uint32_t *)y)[0] == 0 ? N / 2 : N;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < columns; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N) __attribute__((alias("quick")));
