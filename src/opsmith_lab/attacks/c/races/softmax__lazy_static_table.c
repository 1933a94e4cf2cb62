// problem: softmax
// wrong: a table that the first thread fills lazily while the others already read it
// option: threads=2
#include <math.h>
#include <stdint.h>

static float powers[256];
static int ready;

static float fraction(int i)
{
    if (!ready) {
        ready = 1;
        for (int k = 0; k < 256; k++) {
            powers[k] = exp2f((float)k / 256.0f);
        }
    }
    return powers[i];
}

static float power(float v)
{
    float t = v * 1.44269504f, whole = floorf(t), f = (t - whole) * 256.0f;
    int i = (int)f;
    float rest = (f - (float)i) / 256.0f * 0.69314718f;
    return ldexpf(fraction(i) * (1.0f + rest + 0.5f * rest * rest), (int)whole);
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
#pragma omp parallel for
    for (int64_t m = 0; m < M; m++) {
        float largest = x[m * N], sum = 0.0f;
        for (int64_t n = 1; n < N; n++) {
            largest = fmaxf(largest, x[m * N + n]);
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = power(x[m * N + n] - largest);
            sum += y[m * N + n];
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] /= sum;
        }
    }
}
