// problem: row_sum
// right: a compare and swap that tries again, on the bits of a float
// option: threads=2
#include <stdint.h>
#include <string.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        uint32_t total = 0;
#pragma omp parallel for schedule(static)
        for (int64_t c = 0; c < (N + 63) / 64; c++) {
            float part = 0.0f;
            for (int64_t n = c * 64; n < N && n < c * 64 + 64; n++) {
                part += x[m * N + n];
            }
            uint32_t before = __atomic_load_n(&total, __ATOMIC_RELAXED), after;
            do {
                float sum;
                memcpy(&sum, &before, 4);
                sum += part;
                memcpy(&after, &sum, 4);
            } while (!__atomic_compare_exchange_n(&total, &before, after, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
        }
        memcpy(y + m, &total, 4);
    }
}
