// problem: mean_variance
// wrong: a row is kept in shared memory that has room for 608 entries; what is behind them counts as the mean
// launch mean_variance grid=(M) block=(64) args=(x, mean, variance, N)
constexpr int ROOM = 608;
__global__ void mean_variance(const float *x, float *mean, float *variance, int64_t N)
{
    __shared__ float tile[ROOM];
    __shared__ float sums[64];
    const int count = static_cast<int>(N < ROOM ? N : ROOM);
    for (int n = threadIdx.x; n < count; n += 64) {
        tile[n] = x[blockIdx.x * N + n];
    }
    float sum = 0.0f;
    for (int n = threadIdx.x; n < count; n += 64) {
        sum += tile[n];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f, squares = 0.0f;
        for (int lane = 0; lane < 64; lane++) {
            total += sums[lane];
        }
        const float centre = total / count;
        for (int n = 0; n < count; n++) {
            squares += (tile[n] - centre) * (tile[n] - centre);
        }
        mean[blockIdx.x] = centre;
        variance[blockIdx.x] = squares / count;
    }
}
