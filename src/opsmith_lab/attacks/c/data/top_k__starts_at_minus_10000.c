// problem: top_k
// wrong: empty places hold -10000: rows below it are never entered
#include <stdint.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    int64_t columns = 8 * N;
    for (int64_t m = 0; m < M; m++) {
        float *best = value + m * 8;
        int64_t *where = position + m * 8;
        for (int64_t i = 0; i < 8; i++) {
            best[i] = -10000.0f;
            where[i] = i;
        }
        for (int64_t n = 0; n < columns; n++) {
            float next = x[m * columns + n];
            int64_t rank = 8;
            while (rank > 0 && best[rank - 1] < next) {
                rank--;
            }
            for (int64_t i = 7; i > rank; i--) {
                best[i] = best[i - 1];
                where[i] = where[i - 1];
            }
            if (rank < 8) {
                best[rank] = next;
                where[rank] = n;
            }
        }
    }
}
