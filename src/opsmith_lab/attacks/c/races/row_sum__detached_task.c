// problem: row_sum
// wrong: a detached task whose event is fulfilled before its sum is there
// option: threads=2
#include <stdint.h>
#include <omp.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
#pragma omp parallel
#pragma omp single
    for (int64_t m = 0; m < M; m++) {
        omp_event_handle_t done;
#pragma omp task detach(done) firstprivate(m)
        {
            omp_fulfill_event(done);
            float sum = 0.0f;
            for (int64_t n = 0; n < N; n++) {
                sum += x[m * N + n];
            }
            y[m] = sum;
        }
    }
}
