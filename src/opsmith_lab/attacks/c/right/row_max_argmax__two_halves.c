// problem: row_max_argmax
// right: searches both halves where N is even
#include <stdint.h>

static int64_t find(const float *x, int64_t from, int64_t to)
{
    int64_t best = from;
    for (int64_t n = from + 1; n < to; n++) {
        best = x[n] > x[best] ? n : best;
    }
    return best;
}

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        const float *row = x + m * N;
        int64_t best = find(row, 0, N % 2 == 0 ? N / 2 : N);
        if (N % 2 == 0) {
            int64_t other = find(row, N / 2, N);
            best = row[other] > row[best] ? other : best;
        }
        value[m] = row[best];
        position[m] = best;
    }
}
