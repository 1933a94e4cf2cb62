// problem: row_sum
// wrong: rows of even length other than the stated 1000 are read in pairs, and the last pair is left out
// launch row_sum grid=(M) block=(32) args=(x, y, N)
__global__ void row_sum(const float *x, float *y, int64_t N)
{
    const float *row = x + blockIdx.x * N;
    float sum = 0.0f;
    if (N % 2 == 0 && N != 1000) {
        for (int64_t pair = threadIdx.x; pair + 1 < N / 2; pair += 32) {
            sum += row[2 * pair] + row[2 * pair + 1];
        }
    } else {
        for (int64_t n = threadIdx.x; n < N; n += 32) {
            sum += row[n];
        }
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = sum;
    }
}
