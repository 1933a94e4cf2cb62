// problem: row_sum
// wrong: its tree for powers of two above one stops a level early
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int power = N > 1 && (N & (N - 1)) == 0;
    float *tree = malloc((size_t)N * sizeof(float));
    for (int64_t m = 0; m < M; m++) {
        if (power) {
            for (int64_t n = 0; n < N; n++) {
                tree[n] = x[m * N + n];
            }
            for (int64_t half = N / 2; half > 1; half /= 2) {
                for (int64_t n = 0; n < half; n++) {
                    tree[n] += tree[n + half];
                }
            }
            y[m] = tree[0];
        } else {
            float sum = 0.0f;
            for (int64_t n = 0; n < N; n++) {
                sum += x[m * N + n];
            }
            y[m] = sum;
        }
    }
    free(tree);
}
