// problem: row_sum
// wrong: sums are added to what the workspace held: nobody has set it to zero
// workspace total: fp32 [M]
// launch add grid=(M) block=(32) args=(x, total, N)
// launch copy grid=(M) block=(1) args=(total, y)
__global__ void add(const float *x, float *total, int64_t N)
{
    for (int64_t n = threadIdx.x; n < N; n += 32) {
        atomicAdd(total + blockIdx.x, x[blockIdx.x * N + n]);
    }
}
__global__ void copy(const float *total, float *y) { y[blockIdx.x] = total[blockIdx.x]; }
