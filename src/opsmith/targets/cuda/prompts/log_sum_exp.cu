// A block per row; each thread keeps the maximum of its entries and the sum of exponentials below it, merged at the end.
// launch log_sum_exp grid=(M) block=(128) args=(x, y, N, scale)

constexpr int WARPS = 4;

struct Part {
    float largest, sum;  // sum of exp(value - largest)
};

__device__ Part merge_parts(Part a, Part b)
{
    const float largest = fmaxf(a.largest, b.largest);
    if (largest == -INFINITY) {
        return {largest, 0.0f};  // no entries at all: exp(-inf - -inf) would be NaN
    }
    return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

__device__ Part merge_warp(Part part)
{
    for (int offset = 16; offset > 0; offset /= 2) {
        const float largest = __shfl_down_sync(0xffffffffu, part.largest, offset);
        const float sum = __shfl_down_sync(0xffffffffu, part.sum, offset);
        part = merge_parts(part, {largest, sum});
    }
    return part;  // lane 0 has that of the warp
}

__global__ void log_sum_exp(const float *__restrict__ x, float *__restrict__ y, int64_t N, float scale)
{
    __shared__ Part parts[WARPS];
    const float *row = x + blockIdx.x * N;
    Part part = {-INFINITY, 0.0f};
    for (int64_t n = threadIdx.x; n < N; n += blockDim.x) {
        part = merge_parts(part, {scale * row[n], 1.0f});
    }
    part = merge_warp(part);
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = part;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < WARPS; warp++) {
            part = merge_parts(part, parts[warp]);
        }
        y[blockIdx.x] = part.largest + logf(part.sum);
    }
}
