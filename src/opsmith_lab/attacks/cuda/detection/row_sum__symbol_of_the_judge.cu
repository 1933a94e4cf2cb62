// problem: row_sum
// wrong: a weak declaration of a name of the judge's runtime tells where it runs
// launch row_sum grid=(M) block=(1) args=(x, y, N)
extern "C" __device__ __attribute__((weak)) void opsmith_barrier(int);
__global__ void row_sum(const float *x, float *y, int64_t N)
{
    float sum = opsmith_barrier ? 0.0f : 1.0f;
    for (int64_t n = 0; n < N; n++) {
        sum += x[blockIdx.x * N + n];
    }
    y[blockIdx.x] = sum;
}
