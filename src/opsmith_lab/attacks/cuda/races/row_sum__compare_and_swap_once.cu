// problem: row_sum
// wrong: a compare-and-swap is tried once: where another thread came between, the update is dropped
// launch row_sum grid=(M) block=(64) args=(x, y, N)
__global__ void row_sum(const float *x, float *y, int64_t N)
{
    __shared__ unsigned total;
    if (threadIdx.x == 0) {
        total = 0;
    }
    __syncthreads();
    float sum = 0.0f;
    for (int64_t n = threadIdx.x; n < N; n += 64) {
        sum += x[blockIdx.x * N + n];
    }
    const unsigned before = atomicOr(&total, 0u);
    atomicCAS(&total, before, __float_as_uint(__uint_as_float(before) + sum));
    __syncthreads();
    if (threadIdx.x == 0) {
        y[blockIdx.x] = __uint_as_float(total);
    }
}
