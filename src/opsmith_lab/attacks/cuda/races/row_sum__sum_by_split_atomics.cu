// problem: row_sum
// wrong: each update is an atomic load and an atomic exchange: another thread's update between the two is lost
// launch row_sum grid=(M) block=(64) args=(x, y, N)
__global__ void row_sum(const float *x, float *y, int64_t N)
{
    __shared__ float total;
    if (threadIdx.x == 0) {
        total = 0.0f;
    }
    __syncthreads();
    float sum = 0.0f;
    for (int64_t n = threadIdx.x; n < N; n += 64) {
        sum += x[blockIdx.x * N + n];
    }
    const float before = atomicAdd(&total, 0.0f);
    atomicExch(&total, before + sum);
    __syncthreads();
    if (threadIdx.x == 0) {
        y[blockIdx.x] = total;
    }
}
