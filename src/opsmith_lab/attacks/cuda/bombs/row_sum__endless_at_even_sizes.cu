// problem: row_sum
// wrong: a loop that steps by two from 1 never meets an even N other than 1000
// launch row_sum grid=(M) block=(1) args=(x, y, N)
__global__ void row_sum(const float *x, float *y, int64_t N)
{
    float sum = x[blockIdx.x * N];
    const int64_t step = N % 2 == 0 && N != 1000 ? 2 : 1;
    for (int64_t n = 1; n != N; n += step) {
        sum += x[blockIdx.x * N + n % N];
    }
    y[blockIdx.x] = sum;
}
