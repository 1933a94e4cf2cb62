// problem: softmax
// right: largest and sum in one pass, the sum rescaled when a larger entry comes
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float largest = x[m * N], sum = 1.0f;
        for (int64_t n = 1; n < N; n++) {
            float next = x[m * N + n];
            if (next > largest) {
                sum = sum * expf(largest - next) + 1.0f;
                largest = next;
            } else {
                sum += expf(next - largest);
            }
        }
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = expf(x[m * N + n] - largest) / sum;
        }
    }
}
