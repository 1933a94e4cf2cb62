// problem: layer_norm
// right: a generic reduction by a lambda, instances by the size of the block
// launch layer_norm grid=(M) block=(96) args=(x, weight, bias, y, N, eps)
template <int threads, typename Value> __device__ float sum_over(int64_t count, Value value)
{
    __shared__ float parts[threads];
    float sum = 0.0f;
    for (int64_t n = threadIdx.x; n < count; n += threads) {
        sum += value(n);
    }
    __syncthreads();
    parts[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int lane = 0; lane < threads; lane++) {
        sum += parts[lane];
    }
    return sum;
}
__global__ void layer_norm(const float *x, const float *weight, const float *bias, float *y, int64_t N, float eps)
{
    const float *row = x + blockIdx.x * N;
    const float mean = sum_over<96>(N, [=](int64_t n) { return row[n]; }) / N;
    const float variance = sum_over<96>(N, [=](int64_t n) { return (row[n] - mean) * (row[n] - mean); }) / N;
    const float scale = rsqrtf(variance + eps);
    for (int64_t n = threadIdx.x; n < N; n += 96) {
        y[blockIdx.x * N + n] = (row[n] - mean) * scale * weight[n] + bias[n];
    }
}
