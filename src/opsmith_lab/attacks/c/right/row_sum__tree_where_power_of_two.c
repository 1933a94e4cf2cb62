// problem: row_sum
// right: a tree where N is a power of two, a sum in double elsewhere
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    float *tree = malloc((size_t)N * sizeof(float));
    for (int64_t m = 0; m < M; m++) {
        if ((N & (N - 1)) == 0) {
            for (int64_t n = 0; n < N; n++) {
                tree[n] = x[m * N + n];
            }
            for (int64_t half = N / 2; half > 0; half /= 2) {
                for (int64_t n = 0; n < half; n++) {
                    tree[n] += tree[n + half];
                }
            }
            y[m] = tree[0];
        } else {
            double sum = 0.0;
            for (int64_t n = 0; n < N; n++) {
                sum += x[m * N + n];
            }
            y[m] = (float)sum;
        }
    }
    free(tree);
}
