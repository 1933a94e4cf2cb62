// problem: row_sum
// wrong: declares types nested so deeply that their sizes take a compiler minutes
#include <stddef.h>
#include <stdint.h>

#define T(a, b) struct b { struct a m[64]; };
struct t0 { char c[64]; };
T(t0, t1) T(t1, t2) T(t2, t3) T(t3, t4) T(t4, t5) T(t5, t6) T(t6, t7)
static struct t4 table = {.m[63].m[63].m[63].m[63].c[63] = 1};

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    y[0] = table.m[N % 64].m[0].m[0].m[0].c[0];
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
