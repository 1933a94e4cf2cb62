// problem: softmax
// right: a row lies in shared memory whose size the plan computes from N
// launch softmax grid=(M) block=(64) shared=(N + 64) * 4 args=(x, y, N)
__global__ void softmax(const float *x, float *y, int64_t N)
{
    extern __shared__ float memory[];
    float *row = memory, *parts = memory + N;
    float largest = -INFINITY, sum = 0.0f;
    for (int64_t n = threadIdx.x; n < N; n += blockDim.x) {
        row[n] = x[blockIdx.x * N + n];
        largest = fmaxf(largest, row[n]);
    }
    parts[threadIdx.x] = largest;
    __syncthreads();
    for (unsigned lane = 0; lane < blockDim.x; lane++) {
        largest = fmaxf(largest, parts[lane]);
    }
    __syncthreads();
    for (int64_t n = threadIdx.x; n < N; n += blockDim.x) {
        row[n] = expf(row[n] - largest);
        sum += row[n];
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0f;
    for (unsigned lane = 0; lane < blockDim.x; lane++) {
        sum += parts[lane];
    }
    for (int64_t n = threadIdx.x; n < N; n += blockDim.x) {
        y[blockIdx.x * N + n] = row[n] / sum;
    }
}
