// choices: tile=8,16,32,64,128 unroll=1,2,4
#include <math.h>
#include <stdint.h>

enum { TILE = $tile };

__attribute__((simd("notinbranch"))) float expf(float);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        const float *row = x + m * N;
        float *out = y + m * N;
        float largests[TILE], sums[TILE];
        for (int j = 0; j < TILE; j++) {
            largests[j] = row[0];
            sums[j] = 0.0f;
        }
        int64_t n = 0;
#pragma GCC unroll $unroll
        for (; n < N - TILE + 1; n += TILE) {
            for (int j = 0; j < TILE; j++) {
                largests[j] = row[n + j] > largests[j] ? row[n + j] : largests[j];
            }
        }
        float largest = row[0];
        for (; n < N; n++) {
            largest = row[n] > largest ? row[n] : largest;
        }
        for (int j = 0; j < TILE; j++) {
            largest = largests[j] > largest ? largests[j] : largest;
        }
#pragma omp simd
        for (int64_t i = 0; i < N; i++) {
            out[i] = expf(row[i] - largest);
        }
        n = 0;
#pragma GCC unroll $unroll
        for (; n < N - TILE + 1; n += TILE) {
            for (int j = 0; j < TILE; j++) {
                sums[j] += out[n + j];
            }
        }
        float sum = 0.0f;
        for (; n < N; n++) {
            sum += out[n];
        }
        for (int j = 0; j < TILE; j++) {
            sum += sums[j];
        }
        const float inverse = 1.0f / sum;
        for (int64_t i = 0; i < N; i++) {
            out[i] *= inverse;
        }
    }
}
