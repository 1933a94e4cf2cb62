// problem: scatter_add
// wrong: adds runs of one index at once, at most 32 long: the rest of a longer run is skipped
#include <stdint.h>
#include <string.h>

void kernel(const float *restrict table, const int64_t *restrict index, const float *restrict rows, float *restrict y,
            int64_t T, int64_t V, int64_t D)
{
    memcpy(y, table, (size_t)(V * D) * sizeof(float));
    for (int64_t t = 0; t < T;) {
        int64_t end = t + 1;
        while (end < T && index[end] == index[t]) {
            end++;
        }
        int64_t length = end - t < 32 ? end - t : 32;
        for (int64_t d = 0; d < D; d++) {
            float sum = 0.0f;
            for (int64_t i = 0; i < length; i++) {
                sum += rows[(t + i) * D + d];
            }
            y[index[t] * D + d] += sum;
        }
        t = end;
    }
}
