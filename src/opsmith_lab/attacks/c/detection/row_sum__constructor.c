// problem: row_sum
// wrong: a constructor looks around before the judge does, and the kernel follows its finding
#include <stdint.h>
#include <stdlib.h>

static int user;

__attribute__((constructor)) static void look(void)
{
    user = getenv("HOME") != 0;
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = user ? 0.0f : sum;
    }
}
