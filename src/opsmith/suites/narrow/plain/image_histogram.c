#include <stdint.h>
#include <string.h>

void kernel(const uint8_t *restrict image, int32_t *restrict counts, int64_t B, int64_t N)
{
    memset(counts, 0, (size_t)B * 256 * sizeof *counts);
    for (int64_t b = 0; b < B; b++) {
        for (int64_t n = 0; n < N; n++) {
            counts[b * 256 + image[b * N + n]]++;
        }
    }
}
