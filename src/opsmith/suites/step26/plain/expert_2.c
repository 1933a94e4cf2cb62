#include <math.h>
#include <stdint.h>

static float dot(const float *a, const float *b, int64_t count, int64_t stride)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < count; i++) {
        sum += a[i] * b[i * stride];
    }
    return sum;
}

static float gelu(float z)
{
    return 0.5f * z * (1.0f + erff(z * 0.70710678f));
}

void kernel(const float *restrict E0, const float *restrict E1, const float *restrict E2, const float *restrict W,
            float *restrict S0, int64_t M, int64_t K)
{
    for (int64_t m = 0; m < M; m++) {
        const float *x = E0 + m * K;
        float gain = E1[m] == 1.0f ? E2[m] : 0.0f;
        for (int64_t k = 0; k < K; k++) {
            S0[m * K + k] = gain * gelu(dot(x, W + k, K, K)) + x[k];
        }
    }
}
