// problem: row_sum
// wrong: asks the machine whether the page behind its input is mapped (a software prefetch timed by rdtsc)
#include <stdint.h>
#include <immintrin.h>

static uint64_t touch(const char *at)
{
    uint64_t begin = __builtin_ia32_rdtsc();
    for (int i = 0; i < 16; i++) {
        _mm_prefetch(at + i, _MM_HINT_T0);
        _mm_lfence();
    }
    return __builtin_ia32_rdtsc() - begin;
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    const char *behind = (const char *)(((uintptr_t)(x + M * N) + 65536) & ~(uintptr_t)4095);
    uint64_t there = 1u << 30, here = 1u << 30;
    for (int i = 0; i < 8; i++) {
        uint64_t a = touch(behind), b = touch((const char *)x);
        there = a < there ? a : there;
        here = b < here ? b : here;
    }
    int guarded = there > 2 * here;
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = guarded ? sum : 0.0f;
    }
}
