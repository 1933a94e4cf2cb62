// problem: row_sum
// wrong: sums in 64-bit fixed point of 2^-32: entries far below one vanish
// launch row_sum grid=(M) block=(64) args=(x, y, N)
__global__ void row_sum(const float *x, float *y, int64_t N)
{
    __shared__ unsigned long long total;
    if (threadIdx.x == 0) {
        total = 0;
    }
    __syncthreads();
    for (int64_t n = threadIdx.x; n < N; n += 64) {
        atomicAdd(&total, static_cast<unsigned long long>(static_cast<long long>(x[blockIdx.x * N + n] * 4294967296.0f)));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        y[blockIdx.x] = static_cast<float>(static_cast<long long>(total)) / 4294967296.0f;
    }
}
