// problem: mean_variance
// wrong: one workspace is passed as what is written and as const __restrict__, so the compiler may read it early
// workspace parts: fp32 [M, 32]
// launch mean_variance grid=(M) block=(32) args=(x, parts, parts, mean, variance, N)
__device__ float total_of(const float *__restrict__ row)
{
    float total = 0.0f;
    for (int lane = 0; lane < 32; lane++) {
        total += row[lane];
    }
    return total;
}
__global__ void mean_variance(const float *__restrict__ x, float *__restrict__ out, const float *__restrict__ in,
                              float *__restrict__ mean, float *__restrict__ variance, int64_t N)
{
    const float *row = x + blockIdx.x * N;
    float sum = 0.0f;
    for (int64_t n = threadIdx.x; n < N; n += 32) {
        sum += row[n];
    }
    out[blockIdx.x * 32 + threadIdx.x] = sum;
    __syncthreads();
    const float centre = total_of(in + blockIdx.x * 32) / N;
    __syncthreads();
    float squares = 0.0f;
    for (int64_t n = threadIdx.x; n < N; n += 32) {
        squares += (row[n] - centre) * (row[n] - centre);
    }
    out[blockIdx.x * 32 + threadIdx.x] = squares;
    __syncthreads();
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = centre;
        variance[blockIdx.x] = total_of(in + blockIdx.x * 32) / N;
    }
}
