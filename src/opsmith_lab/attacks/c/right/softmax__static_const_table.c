// problem: softmax
// right: a constant table of powers of two and a polynomial
#include <math.h>
#include <stdint.h>

static const float roots[8] = {1.0f,        1.09050773f, 1.18920712f, 1.29683955f,
                               1.41421356f, 1.54221083f, 1.68179283f, 1.83400809f};

static float power(float v)
{
    if (v < -100.0f) {
        return 0.0f;
    }
    float eighths = rintf(v * 11.5415603f), rest = (v - eighths * 0.0866699219f) + eighths * 2.65243050e-05f;
    int whole = (int)eighths;
    int low = whole & 7, high = (whole - low) / 8;
    float series = 1.0f + rest * (1.0f + rest * (0.5f + rest * (0.166666667f + rest * 0.0416666667f)));
    return ldexpf(roots[low] * series, high);
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
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
