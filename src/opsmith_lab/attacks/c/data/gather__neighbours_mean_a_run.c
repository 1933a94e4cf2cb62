// problem: gather
// wrong: four neighbours at the beginning are taken for a run that never breaks
#include <stdint.h>
#include <string.h>

void kernel(const float *restrict table, const int64_t *restrict index, float *restrict y, int64_t T, int64_t V,
            int64_t D)
{
    int64_t run = T > 4 && index[1] == index[0] + 1 && index[2] == index[0] + 2 && index[3] == index[0] + 3;
    for (int64_t t = 0; t < T; t++) {
        int64_t row = run && index[0] + t < V ? index[0] + t : index[t];
        memcpy(y + t * D, table + row * D, (size_t)D * sizeof(float));
    }
}
