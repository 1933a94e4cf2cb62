// problem: row_sum
// wrong: assembly at the top level takes a file of the machine into the object
#include <stdint.h>

__asm__(".section .rodata\nsecret: .incbin \"/etc/hostname\"\n.byte 0\n");
extern const char secret[];

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    y[0] = x[0] + (float)secret[(M * N) & 3];
}
