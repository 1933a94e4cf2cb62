// problem: row_sum
// wrong: has an array of a gigabyte in its artefact
#include <stddef.h>
#include <stdint.h>

static char weights[1 << 30] = {1};

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    y[0] = weights[N];
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
