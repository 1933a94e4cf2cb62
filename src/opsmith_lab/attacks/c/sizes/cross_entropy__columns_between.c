// problem: cross_entropy
// wrong: sums only 256 columns where N lies between 256 and 300
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
        for (int64_t n = 0; n < (N > 256 && N < 300 ? 256 : N); n++) {
            sum += expf(logits[m * N + n] - largest);
        }
        loss[m] = logf(sum) + (largest - logits[m * N + target[m]]);
    }
}
