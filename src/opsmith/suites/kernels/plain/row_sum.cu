// A block sums a row: strided loads, shuffles within each warp, then the warps' sums within the first one.
// launch row_sum grid=(M) block=(256) args=(x, y, N)

constexpr int WARPS = 8;

__device__ float sum_warp(float value)
{
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, offset);
    }
    return value;  // in lane 0
}

extern "C" __global__ void row_sum(const float *__restrict__ x, float *__restrict__ y, long long N)
{
    __shared__ float sums[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float *row = x + blockIdx.x * N;

    float sum = 0.0f;
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        sum += row[n];
    }
    sum = sum_warp(sum);
    if (lane == 0) {
        sums[warp] = sum;
    }
    __syncthreads();

    if (warp == 0) {
        sum = sum_warp(lane < WARPS ? sums[lane] : 0.0f);
        if (lane == 0) {
            y[blockIdx.x] = sum;
        }
    }
}
