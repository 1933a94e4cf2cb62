#include <math.h>
#include <stdint.h>

void kernel(const float *restrict E0, const float *restrict E1, float *restrict S0, int64_t N, int64_t M, int64_t D)
{
    for (int64_t n = 0; n < N; n++) {
        float largest = E0[n * M];
        for (int64_t m = 1; m < M; m++) {
            largest = fmaxf(largest, E0[n * M + m]);
        }
        float total = 0.0f;
        for (int64_t m = 0; m < M; m++) {
            total += expf(E0[n * M + m] - largest);
        }
        for (int64_t d = 0; d < D; d++) {
            float sum = 0.0f;
            for (int64_t m = 0; m < M; m++) {
                sum += expf(E0[n * M + m] - largest) * E1[(n * M + m) * D + d];
            }
            S0[n * D + d] = sum / total;
        }
    }
}
