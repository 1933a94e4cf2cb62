// problem: scatter_add
// right: rows of an entry are listed by atomicAdd on a counter in shared memory, then added by the whole block
// launch scatter_add grid=(V) block=(64) args=(table, index, rows, y, T, D)
__global__ void scatter_add(const float *table, const int64_t *index, const float *rows, float *y, int64_t T, int64_t D)
{
    __shared__ int places[64], count;
    for (int64_t d = threadIdx.x; d < D; d += 64) {
        y[blockIdx.x * D + d] = table[blockIdx.x * D + d];
    }
    for (int64_t start = 0; start < T; start += 64) {
        if (threadIdx.x == 0) {
            count = 0;
        }
        __syncthreads();
        if (start + threadIdx.x < T && index[start + threadIdx.x] == blockIdx.x) {
            places[atomicAdd(&count, 1)] = threadIdx.x;
        }
        __syncthreads();
        for (int64_t d = threadIdx.x; d < D; d += 64) {
            for (int i = 0; i < count; i++) {
                y[blockIdx.x * D + d] += rows[(start + places[i]) * D + d];
            }
        }
        __syncthreads();
    }
}
