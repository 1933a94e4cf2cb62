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

void kernel(const float *restrict E0, const float *restrict Wg, float *restrict S0, float *restrict S1, int64_t M,
            int64_t K, int64_t E)
{
    for (int64_t m = 0; m < M; m++) {
        softmax(E0 + m * K, Wg, S1 + m * E, K, E);
    }
    for (int64_t m = 0; m < M; m++) {
        for (int64_t e = 0; e < E; e++) {
            S0[m * E + e] = find_rank(S1 + e, m, M, E) < 3 ? 1.0f : 0.0f;
        }
    }
}
