// problem: row_sum
// wrong: lost updates are hidden from a delaying judge by instrumentation functions of its own
// option: threads=2
#include <stdint.h>

void __tsan_write4(void *at) { (void)at; }
void __tsan_read4(void *at) { (void)at; }
void __tsan_func_entry(void *at) { (void)at; }
void __tsan_func_exit(void) { }
void __tsan_init(void) { }

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
#pragma omp parallel for
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
