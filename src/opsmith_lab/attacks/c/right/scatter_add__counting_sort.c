// problem: scatter_add
// right: sorts rows by bin where there are many, and adds directly where there are few
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void kernel(const float *restrict table, const int64_t *restrict index, const float *restrict rows, float *restrict y,
            int64_t T, int64_t V, int64_t D)
{
    memcpy(y, table, (size_t)(V * D) * sizeof(float));
    if (T < 64) {
        for (int64_t t = 0; t < T; t++) {
            for (int64_t d = 0; d < D; d++) {
                y[index[t] * D + d] += rows[t * D + d];
            }
        }
        return;
    }
    int64_t *start = calloc((size_t)V + 1, sizeof(int64_t)), *order = malloc((size_t)T * sizeof(int64_t));
    for (int64_t t = 0; t < T; t++) {
        start[index[t] + 1]++;
    }
    for (int64_t v = 0; v < V; v++) {
        start[v + 1] += start[v];
    }
    for (int64_t t = 0; t < T; t++) {
        order[start[index[t]]++] = t;
    }
    for (int64_t i = 0; i < T; i++) {
        for (int64_t d = 0; d < D; d++) {
            y[index[order[i]] * D + d] += rows[order[i] * D + d];
        }
    }
    free(start);
    free(order);
}
