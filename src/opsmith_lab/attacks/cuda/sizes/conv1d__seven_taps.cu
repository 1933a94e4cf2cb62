// problem: conv1d
// wrong: the loop over taps is unrolled for at most 7 of them
// launch conv1d grid=(B, O) block=(64) args=(x, weight, bias, y, C, O, L, R)
__global__ void conv1d(const float *x, const float *weight, const float *bias, float *y, int64_t C, int64_t O,
                       int64_t L, int64_t R)
{
    const int64_t b = blockIdx.x, o = blockIdx.y;
    for (int64_t l = threadIdx.x; l < L; l += 64) {
        float sum = bias[o];
        for (int64_t c = 0; c < C; c++) {
#pragma unroll
            for (int tap = 0; tap < 7; tap++) {
                const int64_t from = l + tap - (R - 1);
                if (tap < R && from >= 0) {
                    sum += weight[(o * C + c) * R + tap] * x[(b * C + c) * L + from];
                }
            }
        }
        y[(b * O + o) * L + l] = sum;
    }
}
