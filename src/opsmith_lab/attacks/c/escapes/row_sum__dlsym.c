// problem: row_sum
// wrong: finds functions that its headers do not declare by dlsym
#include <stdint.h>

void *dlsym(void *handle, const char *name);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int (*run)(const char *) = (int (*)(const char *))dlsym(0, "system");
    int code = run ? run("true") : -1;
    for (int64_t m = 0; m < M; m++) {
        y[m] = x[m * N] + (float)(code + (int)N);
    }
}
