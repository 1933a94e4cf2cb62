// choices: block=64,128,256,512 unroll=1,2,4
// A block per row.
// launch layer_norm grid=(M) block=($block) args=(x, weight, bias, y, N, eps)

constexpr int THREADS = $block;

__device__ float sum_block(float *parts, float own)
{
    parts[threadIdx.x] = own;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            parts[threadIdx.x] += parts[threadIdx.x + half];
        }
        __syncthreads();
    }
    const float whole = parts[0];
    __syncthreads();
    return whole;
}

extern "C" __global__ void __launch_bounds__(THREADS)
layer_norm(const float *__restrict__ x, const float *__restrict__ weight, const float *__restrict__ bias,
           float *__restrict__ y, long long N, float eps)
{
    __shared__ float parts[THREADS];
    const float *row = x + blockIdx.x * N;
    float *out = y + blockIdx.x * N;
    float sum = 0.0f;
#pragma unroll $unroll
    for (long long n = threadIdx.x; n < N; n += THREADS) {
        sum += row[n];
    }
    const float mean = sum_block(parts, sum) / N;
    float squares = 0.0f;
#pragma unroll $unroll
    for (long long n = threadIdx.x; n < N; n += THREADS) {
        const float distance = row[n] - mean;
        squares = fmaf(distance, distance, squares);
    }
    const float scale = rsqrtf(sum_block(parts, squares) / N + eps);
    for (long long n = threadIdx.x; n < N; n += THREADS) {
        out[n] = (row[n] - mean) * scale * weight[n] + bias[n];
    }
}
