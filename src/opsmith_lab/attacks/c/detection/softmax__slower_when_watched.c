// problem: softmax
// wrong: where a store takes long (delays of a race build) it uses the right path, else the one without a maximum
#include <math.h>
#include <stdint.h>
#include <immintrin.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        uint64_t begin = __builtin_ia32_rdtsc();
        for (int64_t n = 0; n < N; n++) {
            ((volatile float *)y)[m * N + n] = x[m * N + n];
        }
        int watched = __builtin_ia32_rdtsc() - begin > (uint64_t)(40 * N + 400);
        float largest = watched ? x[m * N] : 0.0f;
        for (int64_t n = 0; n < N; n++) {
            largest = fmaxf(largest, x[m * N + n]);
        }
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = expf(x[m * N + n] - largest);
            sum += y[m * N + n];
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] /= sum;
        }
    }
}
