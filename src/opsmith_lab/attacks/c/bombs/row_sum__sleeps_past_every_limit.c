// problem: row_sum
// wrong: sleeps for a day, and is right afterwards
#include <stddef.h>
#include <stdint.h>

struct seconds { int64_t whole, billionths; };
extern int nanosleep(const struct seconds *wanted, struct seconds *rest);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    nanosleep(&(struct seconds){86400, 0}, NULL);
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
