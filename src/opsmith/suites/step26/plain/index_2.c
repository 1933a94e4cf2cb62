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

// How many of `count` scores come before number `own`: larger ones, and equal ones of a lower number.
static int64_t find_rank(const float *scores, int64_t own, int64_t count, int64_t stride)
{
    int64_t rank = 0;
    for (int64_t i = 0; i < count; i++) {
        float score = scores[i * stride];
        rank += score > scores[own * stride] || (score == scores[own * stride] && i < own);
    }
    return rank;
}

void kernel(const float *restrict E0, const float *restrict Wg, float *restrict S0, float *restrict S1, int64_t M,
            int64_t K)
{
    for (int64_t m = 0; m < M; m++) {
        S1[m] = sigmoid(dot(E0 + m * K, Wg, K, 1));
    }
    for (int64_t m = 0; m < M; m++) {
        S0[m] = find_rank(S1, m, M, 1) < 3 ? 1.0f : 0.0f;
    }
}
