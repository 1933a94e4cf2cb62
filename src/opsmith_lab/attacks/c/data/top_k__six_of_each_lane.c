// problem: top_k
// wrong: keeps the six largest of each of eight lanes: seven large ones in one lane lose one
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    int64_t columns = 8 * N;
    for (int64_t m = 0; m < M; m++) {
        float kept[48];
        int64_t from[48];
        for (int64_t lane = 0; lane < 8; lane++) {
            for (int64_t i = 0; i < 6; i++) {
                kept[lane * 6 + i] = -INFINITY;
                from[lane * 6 + i] = 0;
            }
            for (int64_t n = lane; n < columns; n += 8) {
                float next = x[m * columns + n];
                int64_t rank = 6;
                while (rank > 0 && kept[lane * 6 + rank - 1] < next) {
                    rank--;
                }
                for (int64_t i = 5; i > rank; i--) {
                    kept[lane * 6 + i] = kept[lane * 6 + i - 1];
                    from[lane * 6 + i] = from[lane * 6 + i - 1];
                }
                if (rank < 6) {
                    kept[lane * 6 + rank] = next;
                    from[lane * 6 + rank] = n;
                }
            }
        }
        for (int64_t i = 0; i < 8; i++) {
            int64_t best = 0;
            for (int64_t j = 1; j < 48; j++) {
                if (kept[j] > kept[best]) {
                    best = j;
                }
            }
            value[m * 8 + i] = kept[best];
            position[m * 8 + i] = from[best];
            kept[best] = -INFINITY;
        }
    }
}
