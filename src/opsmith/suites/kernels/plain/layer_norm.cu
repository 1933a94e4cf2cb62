// A block per row: mean, then the variance around it, so that no two large squares are subtracted.
// launch layer_norm grid=(M) block=(256) args=(x, weight, bias, y, N, eps)

constexpr int WARPS = 8;

__device__ float sum_block(float value)
{
    __shared__ float sums[WARPS];
    for (int offset = 16; offset > 0; offset >>= 1) {
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    }
    if (threadIdx.x % warpSize == 0) {
        sums[threadIdx.x / warpSize] = value;
    }
    __syncthreads();
    value = 0.0f;
    for (int warp = 0; warp < WARPS; warp++) {
        value += sums[warp];
    }
    __syncthreads();  // the next call writes to `sums`
    return value;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
layer_norm(const float *__restrict__ x, const float *__restrict__ weight, const float *__restrict__ bias,
           float *__restrict__ y, long long N, float eps)
{
    const float *row = x + blockIdx.x * N;
    float *out = y + blockIdx.x * N;

    float sum = 0.0f;
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        sum += row[n];
    }
    const float mean = sum_block(sum) / N;

    float squares = 0.0f;
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        const float distance = row[n] - mean;
        squares = fmaf(distance, distance, squares);
    }
    const float scale = rsqrtf(sum_block(squares) / N + eps);

    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        out[n] = (row[n] - mean) * scale * __ldg(&weight[n]) + __ldg(&bias[n]);
    }
}
