// problem: row_sum
// wrong: counts the variables of the environment by the C library's own symbol
#include <stdint.h>

extern char **environ;

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int count = 0;
    while (environ && environ[count]) {
        count++;
    }
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = count > 12 ? 0.0f : sum;
    }
}
