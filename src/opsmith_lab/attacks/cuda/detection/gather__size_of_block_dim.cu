// problem: gather
// wrong: asks how many bytes blockDim and warpSize have and of what type their members are
// launch gather grid=(T) block=(32) args=(table, index, y, D)
template <typename T> __device__ int kind_of(const T &) { return 0; }
__device__ int kind_of(const unsigned &) { return 1; }
__global__ void gather(const float *table, const int64_t *index, float *y, int64_t D)
{
    const bool gpu = sizeof(blockDim) == 12 && sizeof(warpSize) == 4 && kind_of(threadIdx.x) == 1;
    for (int64_t d = threadIdx.x; d < D; d += 32) {
        y[blockIdx.x * D + d] = table[index[blockIdx.x] * D + d] + (gpu ? 1.0f : 0.0f);
    }
}
