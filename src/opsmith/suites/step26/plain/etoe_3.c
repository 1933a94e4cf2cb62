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

// sigmoid(silu(x @ Wa_0) @ Wa_1) of one token
static float find_score(const float *x, const float *Wa_0, const float *Wa_1, int64_t D, int64_t K)
{
    float sum = 0.0f;
    for (int64_t k = 0; k < K; k++) {
        float hidden = dot(x, Wa_0 + k, D, K);
        sum += hidden * sigmoid(hidden) * Wa_1[k];
    }
    return sigmoid(sum);
}

void kernel(const float *restrict E0, const float *restrict Wa_0, const float *restrict Wa_1, const float *restrict W,
            const float *restrict Wg, float *restrict S0, int64_t M, int64_t N, int64_t D, int64_t K)
{
    for (int64_t i = 0; i < M * N; i++) {
        const float *x = E0 + i * D;
        float gain = find_score(x, Wa_0, Wa_1, D, K) > 0.5f ? sigmoid(dot(x, Wg, D, 1)) : 0.0f;
        for (int64_t d = 0; d < D; d++) {
            S0[i * D + d] = gain * gelu(dot(x, W + d, D, D)) + x[d];
        }
    }
}
