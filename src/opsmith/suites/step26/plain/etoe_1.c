#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static float dot(const float *a, const float *b, int64_t count, int64_t stride)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < count; i++) {
        sum += a[i] * b[i * stride];
    }
    return sum;
}

// The affinities of one token for every expert.
static void softmax(const float *x, const float *Wg, float *affinity, int64_t K, int64_t E)
{
    for (int64_t e = 0; e < E; e++) {
        affinity[e] = dot(x, Wg + e, K, E);
    }
    float largest = affinity[0];
    for (int64_t e = 1; e < E; e++) {
        largest = fmaxf(largest, affinity[e]);
    }
    float sum = 0.0f;
    for (int64_t e = 0; e < E; e++) {
        affinity[e] = expf(affinity[e] - largest);
        sum += affinity[e];
    }
    for (int64_t e = 0; e < E; e++) {
        affinity[e] /= sum;
    }
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

static float gelu(float z)
{
    return 0.5f * z * (1.0f + erff(z * 0.70710678f));
}

// Adds weight * (gelu(x @ W_0) @ W_1) to y.
static void add_expert(const float *x, const float *W_0, const float *W_1, float weight, float *y, int64_t K, int64_t D)
{
    for (int64_t d = 0; d < D; d++) {
        float hidden = weight * gelu(dot(x, W_0 + d, K, D));
        for (int64_t k = 0; k < K; k++) {
            y[k] += hidden * W_1[d * K + k];
        }
    }
}

void kernel(const float *restrict E0, const float *restrict Wg, const float *restrict W0_0, const float *restrict W0_1,
            const float *restrict W1_0, const float *restrict W1_1, const float *restrict W2_0,
            const float *restrict W2_1, float *restrict S0, int64_t M, int64_t N, int64_t K, int64_t E, int64_t D)
{
    const float *W_0[3] = {W0_0, W1_0, W2_0}, *W_1[3] = {W0_1, W1_1, W2_1};
    float *affinity = malloc((size_t)E * sizeof(float));
    for (int64_t i = 0; i < M * N; i++) {
        softmax(E0 + i * K, Wg, affinity, K, E);
        for (int64_t k = 0; k < K; k++) {
            S0[i * K + k] = 0.0f;
        }
        for (int64_t e = 0; e < 3; e++) {
            if (find_rank(affinity, e, E, 1) < 2) {
                add_expert(E0 + i * K, W_0[e], W_1[e], affinity[e], S0 + i * K, K, D);
            }
        }
    }
    free(affinity);
}
