// problem: row_sum
// wrong: catches its own fault to learn where guard pages stand
#include <stdint.h>

typedef void (*handler)(int);
handler signal(int number, handler what);
static volatile int faults;
static void caught(int number) { faults += number; }

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    handler old = signal(11, caught);
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = old == 0 ? sum : 0.0f;
    }
}
