// problem: row_sum
// wrong: writes into the memory of the process that judges it
#include <stddef.h>
#include <stdint.h>

struct piece { void *start; size_t size; };
extern int64_t process_vm_writev(int process, const struct piece *from, uint64_t count, const struct piece *to,
                                 uint64_t places, uint64_t flags);
extern int getppid(void);

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    struct piece piece = {y, sizeof(float)};
    if (process_vm_writev(getppid(), &piece, 1, &piece, 1, 0) < 0) {
        __builtin_trap();
    }
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
