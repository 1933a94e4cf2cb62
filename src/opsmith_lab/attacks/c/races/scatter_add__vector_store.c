// problem: scatter_add
// wrong: rows of sixteen are added by vector loads and stores without any guard
// option: threads=2
#include <stdint.h>
#include <immintrin.h>

void kernel(const float *restrict table, const int64_t *restrict index, const float *restrict rows, float *restrict y,
            int64_t T, int64_t V, int64_t D)
{
    for (int64_t i = 0; i < V * D; i++) {
        y[i] = table[i];
    }
#pragma omp parallel for schedule(static, 1)
    for (int64_t t = 0; t < T; t++) {
        float *to = y + index[t] * D;
        const float *from = rows + t * D;
        int64_t d = 0;
        for (; d + 8 <= D; d += 8) {
            _mm256_storeu_ps(to + d, _mm256_add_ps(_mm256_loadu_ps(to + d), _mm256_loadu_ps(from + d)));
        }
        for (; d < D; d++) {
            to[d] += from[d];
        }
    }
}
