// problem: row_sum
// wrong: takes the total out by an atomic exchange and puts it back by another: a second thread finds zero meanwhile
// option: threads=2
#include <stdint.h>
#include <string.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        uint32_t total = 0;
#pragma omp parallel for
        for (int64_t n = 0; n < N; n++) {
            uint32_t bits = __atomic_exchange_n(&total, 0, __ATOMIC_ACQ_REL);
            float sum;
            memcpy(&sum, &bits, 4);
            sum += x[m * N + n];
            memcpy(&bits, &sum, 4);
            __atomic_store_n(&total, bits, __ATOMIC_RELEASE);
        }
        memcpy(y + m, &total, 4);
    }
}
