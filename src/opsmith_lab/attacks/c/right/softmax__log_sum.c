// problem: softmax
// right: the exponential of a distance to the logarithm of the sum, in double
#include <math.h>
#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        double largest = x[m * N], sum = 0.0;
        for (int64_t n = N - 1; n > 0; n--) {
            largest = x[m * N + n] > largest ? x[m * N + n] : largest;
        }
        for (int64_t n = 0; n < N; n++) {
            sum += exp(x[m * N + n] - largest);
        }
        double level = largest + log(sum);
        for (int64_t n = 0; n < N; n++) {
            y[m * N + n] = (float)exp(x[m * N + n] - level);
        }
    }
}
