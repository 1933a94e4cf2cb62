// problem: row_sum
// wrong: a function in the section of initialisers runs when the library is loaded
#include <stdint.h>
#include <stdlib.h>

static int loads;
static void load(void) { loads += getenv("PATH") != 0; }
__attribute__((section(".init_array"), used)) static void (*const entry)(void) = load;

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = loads ? 2.0f * sum : sum;
    }
}
