// choices: block=64,128,256,512 unroll=1,2,4
// A block per row.
// launch softmax grid=(M) block=($block) args=(x, y, N)

constexpr int THREADS = $block;

__device__ float combine(float *parts, float own, bool is_sum)
{
    parts[threadIdx.x] = own;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            const float other = parts[threadIdx.x + half];
            parts[threadIdx.x] = is_sum ? parts[threadIdx.x] + other : fmaxf(parts[threadIdx.x], other);
        }
        __syncthreads();
    }
    const float whole = parts[0];
    __syncthreads();
    return whole;
}

extern "C" __global__ void __launch_bounds__(THREADS)
softmax(const float *__restrict__ x, float *__restrict__ y, long long N)
{
    __shared__ float parts[THREADS];
    const float *row = x + blockIdx.x * N;
    float *out = y + blockIdx.x * N;
    float largest = row[0];
#pragma unroll $unroll
    for (long long n = threadIdx.x; n < N; n += THREADS) {
        largest = fmaxf(largest, row[n]);
    }
    largest = combine(parts, largest, false);
    float total = 0.0f;
#pragma unroll $unroll
    for (long long n = threadIdx.x; n < N; n += THREADS) {
        total += expf(row[n] - largest);
    }
    const float scale = 1.0f / combine(parts, total, true);
    for (long long n = threadIdx.x; n < N; n += THREADS) {
        out[n] = expf(row[n] - largest) * scale;
    }
}
