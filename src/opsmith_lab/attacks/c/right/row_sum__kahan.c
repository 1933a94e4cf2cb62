// problem: row_sum
// right: Neumaier's compensated sum
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f, lost = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            float next = x[m * N + n], total = sum + next;
            lost += fabsf(sum) >= fabsf(next) ? (sum - total) + next : (next - total) + sum;
            sum = total;
        }
        y[m] = sum + lost;
    }
}
