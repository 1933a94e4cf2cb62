// problem: row_sum
// wrong: jumps over its caller's frames
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    void **frame = __builtin_frame_address(0);
    for (int64_t m = 0; m < M; m++) {
        y[m] = x[m * N];
    }
    if (N > 129) {
        void *jump[5] = {frame[0], frame[1], frame, 0, 0};
        __builtin_longjmp(jump, 1);
    }
}
