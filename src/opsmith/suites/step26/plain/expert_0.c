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

static float sigmoid(float z)
{
    return 1.0f / (1.0f + expf(-z));
}

static float gelu(float z)
{
    return 0.5f * z * (1.0f + erff(z * 0.70710678f));
}

void kernel(const float *restrict E0, const float *restrict E1, const float *restrict W, const float *restrict Wg,
            float *restrict S0, int64_t M, int64_t N, int64_t D, int64_t E)
{
    for (int64_t i = 0; i < M * N; i++) {
        const float *x = E0 + i * D;
        float gain = E1[i * E] * sigmoid(dot(x, Wg, D, 1));
        for (int64_t d = 0; d < D; d++) {
            S0[i * D + d] = gain * gelu(dot(x, W + d, D, D)) + x[d];
        }
    }
}
