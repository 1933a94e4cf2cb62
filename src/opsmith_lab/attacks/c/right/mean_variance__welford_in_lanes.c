// problem: mean_variance
// right: four Welford lanes, joined by Chan's rule
#include <stdint.h>

void kernel(const float *restrict x, float *restrict mean, float *restrict variance, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float count = 0.0f, centre = 0.0f, squares = 0.0f;
        for (int64_t lane = 0; lane < 4; lane++) {
            float n_lane = 0.0f, c = 0.0f, s = 0.0f;
            for (int64_t n = lane; n < N; n += 4) {
                float distance = x[m * N + n] - c;
                c += distance / ++n_lane;
                s += distance * (x[m * N + n] - c);
            }
            if (n_lane > 0.0f) {
                float total = count + n_lane, distance = c - centre;
                squares += s + distance * distance * count * n_lane / total;
                centre += distance * n_lane / total;
                count = total;
            }
        }
        mean[m] = centre;
        variance[m] = squares / count;
    }
}
