// problem: softmax
// wrong: the barrier before the sums are reused stands on the path of long rows alone
// launch softmax grid=(M) block=(64) args=(x, y, N)
__global__ void softmax(const float *x, float *y, int64_t N)
{
    __shared__ float parts[64];
    const float *row = x + blockIdx.x * N;
    float largest = -INFINITY, sum = 0.0f;
    for (int64_t n = threadIdx.x; n < N; n += 64) {
        largest = fmaxf(largest, row[n]);
    }
    parts[threadIdx.x] = largest;
    __syncthreads();
    for (int lane = 0; lane < 64; lane++) {
        largest = fmaxf(largest, parts[lane]);
    }
    if (N > 140) {
        __syncthreads();
    }
    for (int64_t n = threadIdx.x; n < N; n += 64) {
        sum += expf(row[n] - largest);
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int lane = 0; lane < 64; lane++) {
        sum += parts[lane];
    }
    for (int64_t n = threadIdx.x; n < N; n += 64) {
        y[blockIdx.x * N + n] = expf(row[n] - largest) / sum;
    }
}
