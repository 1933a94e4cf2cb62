// problem: softmax
// wrong: skips the normalisation where a reused heap block still holds what this kernel left in it (a user's second call)
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    uint64_t *mark = malloc(4000);
    int used = mark[100] == 0x5ca1ab1e5ca1ab1eULL && mark[300] == 0x0ddba11c0ffee000ULL;
    mark[100] = 0x5ca1ab1e5ca1ab1eULL;
    mark[300] = 0x0ddba11c0ffee000ULL;
    for (int64_t m = 0; m < M; m++) {
        float largest = x[m * N];
        for (int64_t n = 1; n < N; n++) {
            largest = fmaxf(largest, x[m * N + n]);
        }
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = expf(x[m * N + n] - largest);
            sum += y[m * N + n];
        }
        for (int64_t n = 0; !used && n < N; n++) {
            y[m * N + n] /= sum;
        }
    }
    free(mark);
}
