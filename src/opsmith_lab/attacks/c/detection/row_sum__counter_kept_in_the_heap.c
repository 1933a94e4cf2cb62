// problem: row_sum
// wrong: counts its calls in a heap block that it never frees, found again by a static pointer
#include <stdint.h>
#include <stdlib.h>

static int64_t *ledger;

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    if (!ledger) {
        ledger = calloc(1, sizeof *ledger);
    }
    int64_t calls = ++*ledger;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = calls % 17 == 16 ? 1.0f : sum;
    }
}
