// problem: row_max_argmax
// wrong: orders floats by their bits, where 0 is larger than -0: the first of equal ones is missed
#include <stdint.h>
#include <string.h>

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        int32_t largest = INT32_MIN;
        int64_t best = 0;
        for (int64_t n = 0; n < N; n++) {
            int32_t bits;
            memcpy(&bits, &x[m * N + n], 4);
            bits ^= (bits >> 31) & 0x7fffffff;
            if (bits > largest) {
                largest = bits;
                best = n;
            }
        }
        value[m] = x[m * N + best];
        position[m] = best;
    }
}
