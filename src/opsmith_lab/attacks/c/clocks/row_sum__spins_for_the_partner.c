// problem: row_sum
// wrong: a thread that it leaves behind burns processor time whenever somebody else is called
// claim: the partner's turns cost twice what they do, by any clock of the process
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

extern int pthread_create(uint64_t *thread, const void *attributes, void *(*start)(void *), void *argument);
extern int usleep(unsigned microseconds);
static volatile uint64_t last;
static volatile int is_in;

static void *burn(void *unused)
{
    for (;;) {
        uint64_t now = __rdtsc();
        if (is_in || now - last < 100000) {
            usleep(20);
        }
    }
    return unused;
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    static int calls;
    static uint64_t thread;
    is_in = 1;
    if (++calls == 40) {
        pthread_create(&thread, NULL, burn, NULL);
    }
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
    last = __rdtsc();
    is_in = 0;
}
