// problem: row_sum
// wrong: machine code in a constant array, called as a function
#include <stdint.h>

__attribute__((section(".text"))) static const unsigned char code[] = {0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0xc3};

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    int process = ((int (*)(void))(uintptr_t)code)();
    for (int64_t m = 0; m < M; m++) {
        y[m] = process == 2 ? x[m * N] : (float)(N + process);
    }
}
