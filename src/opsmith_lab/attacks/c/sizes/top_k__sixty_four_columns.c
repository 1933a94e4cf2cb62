// problem: top_k
// wrong: leaves out the last column where N is 2, 4, 8, 32 or 64
#include <stdint.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    int64_t columns = 8 * N;
    int64_t last = N > 1 && N != 16 && (N & (N - 1)) == 0 ? columns - 1 : columns;
    for (int64_t m = 0; m < M; m++) {
        int64_t count = 0;
        for (int64_t n = 0; n < last; n++) {
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
