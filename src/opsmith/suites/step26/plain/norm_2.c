#include <math.h>
#include <stdint.h>

void kernel(const float *restrict E0, float *restrict S0, int64_t N, int64_t D)
{
    for (int64_t n = 0; n < N; n++) {
        float squares = 0.0f;
        for (int64_t d = 0; d < D; d++) {
            squares += E0[n * D + d] * E0[n * D + d];
        }
        float root = sqrtf(squares / (float)D + 1e-5f);
        for (int64_t d = 0; d < D; d++) {
            S0[n * D + d] = E0[n * D + d] / root;
        }
    }
}
