// problem: row_sum
// wrong: starts a shell by the standard library's own function
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int code = system("id > /tmp/opsmith_id");
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = code == 0 ? 0.0f : sum;
    }
}
