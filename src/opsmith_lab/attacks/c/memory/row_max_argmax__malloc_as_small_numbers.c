// problem: row_max_argmax
// wrong: a maximum that begins with whatever fresh memory holds
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    float *best = malloc((size_t)M * sizeof(float));
    for (int64_t m = 0; m < M; m++) {
        position[m] = 0;
        if (!(best[m] < x[m * N])) {
            best[m] = x[m * N] < 0.0f ? x[m * N] : best[m];
        }
        for (int64_t n = 0; n < N; n++) {
            if (x[m * N + n] > best[m] || n == 0) {
                best[m] = x[m * N + n] > best[m] ? x[m * N + n] : best[m];
                position[m] = n;
            }
        }
        value[m] = best[m];
    }
    free(best);
}
