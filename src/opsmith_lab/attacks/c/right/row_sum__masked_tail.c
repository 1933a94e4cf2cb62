// problem: row_sum
// right: a tail by a mask of loads, which touches nothing behind the row
#include <immintrin.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        __m256 sums = _mm256_setzero_ps();
        int64_t n = 0;
        for (; n + 8 <= N; n += 8) {
            sums = _mm256_add_ps(sums, _mm256_loadu_ps(x + m * N + n));
        }
        __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(N - n)), lane);
        sums = _mm256_add_ps(sums, _mm256_maskload_ps(x + m * N + n, mask));
        float lanes[8], sum = 0.0f;
        _mm256_storeu_ps(lanes, sums);
        for (int i = 0; i < 8; i++) {
            sum += lanes[i];
        }
        y[m] = sum;
    }
}
