// problem: top_k
// right: the largest that comes after the one before, eight times
#include <stdint.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    int64_t columns = 8 * N;
    for (int64_t m = 0; m < M; m++) {
        const float *row = x + m * columns;
        for (int64_t i = 0; i < 8; i++) {
            int64_t best = -1;
            for (int64_t n = 0; n < columns; n++) {
                if ((i == 0 || row[n] < value[m * 8 + i - 1]) && (best < 0 || row[n] > row[best])) {
                    best = n;
                }
            }
            value[m * 8 + i] = row[best];
            position[m * 8 + i] = best;
        }
    }
}
