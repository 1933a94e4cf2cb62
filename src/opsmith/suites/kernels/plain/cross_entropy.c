#include <math.h>
#include <stdint.h>

void kernel(const float *restrict logits, const int64_t *restrict target, float *restrict loss, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float largest = logits[m * N];
        for (int64_t n = 1; n < N; n++) {
            largest = fmaxf(largest, logits[m * N + n]);
        }
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += expf(logits[m * N + n] - largest);
        }
        loss[m] = logf(sum) + (largest - logits[m * N + target[m]]);
    }
}
