// choices: tile=8,16,32,64,128 unroll=1,2,4
#include <math.h>
#include <stdint.h>

enum { TILE = $tile };

void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
            int64_t M, int64_t N, double eps)
{
    for (int64_t m = 0; m < M; m++) {
        const float *row = x + m * N;
        float *out = y + m * N;
        float sums[TILE] = {0}, squares[TILE] = {0};
        int64_t n = 0;
#pragma GCC unroll $unroll
        for (; n < N - TILE + 1; n += TILE) {
            for (int j = 0; j < TILE; j++) {
                sums[j] += row[n + j];
            }
        }
        float sum = 0.0f;
        for (; n < N; n++) {
            sum += row[n];
        }
        for (int j = 0; j < TILE; j++) {
            sum += sums[j];
        }
        const float mean = sum / (float)N;
        n = 0;
#pragma GCC unroll $unroll
        for (; n < N - TILE + 1; n += TILE) {
            for (int j = 0; j < TILE; j++) {
                const float distance = row[n + j] - mean;
                squares[j] += distance * distance;
            }
        }
        float square = 0.0f;
        for (; n < N; n++) {
            square += (row[n] - mean) * (row[n] - mean);
        }
        for (int j = 0; j < TILE; j++) {
            square += squares[j];
        }
        const float factor = 1.0f / sqrtf(square / (float)N + (float)eps);
        for (int64_t i = 0; i < N; i++) {
            out[i] = (row[i] - mean) * factor * weight[i] + bias[i];
        }
    }
}
