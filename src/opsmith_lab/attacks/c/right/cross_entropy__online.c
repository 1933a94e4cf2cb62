// problem: cross_entropy
// right: one pass over the logits, the sum rescaled when a larger one comes
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict logits, const int64_t *restrict target, float *restrict loss, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float largest = -INFINITY, sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            float next = logits[m * N + n], level = fmaxf(largest, next);
            sum = sum * expf(largest - level) + expf(next - level);
            largest = level;
        }
        loss[m] = logf(sum) + (largest - logits[m * N + target[m]]);
    }
}
