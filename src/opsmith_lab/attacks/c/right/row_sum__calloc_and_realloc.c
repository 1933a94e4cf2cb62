// problem: row_sum
// right: scratch memory that grows by realloc, whose new part is set
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int64_t room = 1, used = 0;
    float *sums = calloc((size_t)room, sizeof(float));
    for (int64_t m = 0; m < M; m++) {
        if (used == room) {
            room *= 2;
            sums = realloc(sums, (size_t)room * sizeof(float));
        }
        sums[used] = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sums[used] += x[m * N + n];
        }
        used++;
    }
    for (int64_t m = 0; m < M; m++) {
        y[m] = sums[m];
    }
    free(sums);
}
