// problem: softmax
// right: peels up to the next multiple of 64 bytes of each row, then whole vectors, then a tail
#include <immintrin.h>
#include <math.h>
#include <stdint.h>

static float row_total(float *row, int64_t N)
{
    int64_t n = 0;
    float sum = 0.0f;
    for (; n < N && ((uintptr_t)(row + n) & 31); n++) {
        sum += row[n];
    }
    __m256 sums = _mm256_setzero_ps();
    for (; n + 8 <= N; n += 8) {
        sums = _mm256_add_ps(sums, _mm256_load_ps(row + n));
    }
    float lanes[8];
    _mm256_storeu_ps(lanes, sums);
    for (int i = 0; i < 8; i++) {
        sum += lanes[i];
    }
    for (; n < N; n++) {
        sum += row[n];
    }
    return sum;
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float largest = x[m * N];
        for (int64_t n = 1; n < N; n++) {
            largest = fmaxf(largest, x[m * N + n]);
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = expf(x[m * N + n] - largest);
        }
        float factor = 1.0f / row_total(y + m * N, N);
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] *= factor;
        }
    }
}
