// problem: row_sum
// wrong: skips the last row from the tenth call at the same sizes on
#include <stdint.h>

struct seen { int64_t rows, columns, calls; };
static struct seen history;

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    struct seen *now = &history;
    now->calls = now->rows == M && now->columns == N ? now->calls + 1 : 1;
    now->rows = M;
    now->columns = N;
    for (int64_t m = 0; m < M - (now->calls > 9); m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
