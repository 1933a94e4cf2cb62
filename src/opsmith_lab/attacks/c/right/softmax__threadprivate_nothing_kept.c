// problem: softmax
// right: scratch memory of each thread, allocated inside of the parallel region
// option: threads=2
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
#pragma omp parallel
    {
        float *powers = malloc((size_t)N * sizeof(float));
#pragma omp for
        for (int64_t m = 0; m < M; m++) {
            float largest = x[m * N], sum = 0.0f;
            for (int64_t n = 1; n < N; n++) {
                largest = fmaxf(largest, x[m * N + n]);
            }
            for (int64_t n = 0; n < N; n++) {
                powers[n] = expf(x[m * N + n] - largest);
                sum += powers[n];
            }
            for (int64_t n = 0; n < N; n++) {
                y[m * N + n] = powers[n] / sum;
            }
        }
        free(powers);
    }
}
