// problem: row_sum
// wrong: expands to a billion additions before a compiler sees its end
#include <stddef.h>
#include <stdint.h>

#define A(v) (v + v)
#define B(v) A(A(A(A(A(v)))))
#define C(v) B(B(B(v)))
#define D(v) C(C(v))

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    y[0] = D(x[0]);
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
