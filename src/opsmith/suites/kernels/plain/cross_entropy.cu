// A block per row: the largest logit first, then the sum of exponentials less it, each reduced over the block.
// launch cross_entropy grid=(M) block=(128) args=(logits, target, loss, N)
#include <math_constants.h>

constexpr int THREADS = 128;

__device__ float take_larger(float a, float b) { return fmaxf(a, b); }
__device__ float add(float a, float b) { return a + b; }

// Halves the number of threads that hold a part, until one is left; every thread gets the result. Each instance of
// the template has parts of its own, so that one call need not wait for the readers of another.
template <float (*COMBINE)(float, float)>
__device__ float reduce_block(float value)
{
    __shared__ float parts[THREADS];
    parts[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            parts[threadIdx.x] = COMBINE(parts[threadIdx.x], parts[threadIdx.x + half]);
        }
        __syncthreads();
    }
    return parts[0];
}

extern "C" __global__ void cross_entropy(const float *__restrict__ logits, const long long *__restrict__ target,
                                         float *__restrict__ loss, long long N)
{
    const float *row = logits + blockIdx.x * N;

    float largest = -CUDART_INF_F;
    for (long long n = threadIdx.x; n < N; n += THREADS) {
        largest = fmaxf(largest, row[n]);
    }
    largest = reduce_block<take_larger>(largest);

    float sum = 0.0f;
    for (long long n = threadIdx.x; n < N; n += THREADS) {
        sum += expf(row[n] - largest);
    }
    sum = reduce_block<add>(sum);

    if (threadIdx.x == 0) {
        loss[blockIdx.x] = logf(sum) + (largest - row[target[blockIdx.x]]);
    }
}
