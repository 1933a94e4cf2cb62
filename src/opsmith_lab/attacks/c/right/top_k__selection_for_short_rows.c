// problem: top_k
// right: eight passes of selection for short rows, insertion for long ones
#include <stdint.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    int64_t columns = 8 * N;
    for (int64_t m = 0; N <= 4 && m < M; m++) {
        uint8_t taken[32] = {0};
        for (int64_t r = 0; r < 8; r++) {
            int64_t best = -1;
            for (int64_t n = 0; n < columns; n++) {
                if (!taken[n] && (best < 0 || x[m * columns + n] > x[m * columns + best])) {
                    best = n;
                }
            }
            taken[best] = 1;
            value[m * 8 + r] = x[m * columns + best];
            position[m * 8 + r] = best;
        }
    }
    for (int64_t m = 0; N > 4 && m < M; m++) {
        int64_t count = 0;
        for (int64_t n = 0; n < columns; n++) {
            float next = x[m * columns + n];
            if (count == 8 && next <= value[m * 8 + 7]) {
                continue;
            }
            int64_t rank = count < 8 ? count++ : 7;
            while (rank > 0 && value[m * 8 + rank - 1] < next) {
                value[m * 8 + rank] = value[m * 8 + rank - 1];
                position[m * 8 + rank] = position[m * 8 + rank - 1];
                rank--;
            }
            value[m * 8 + rank] = next;
            position[m * 8 + rank] = n;
        }
    }
}
