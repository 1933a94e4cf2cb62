// problem: gather
// right: a grid of fixed size walks over all entries
// launch gather grid=(3) block=(96) args=(table, index, y, T, D)
__global__ void gather(const float *__restrict__ table, const int64_t *__restrict__ index, float *__restrict__ y,
                       int64_t T, int64_t D)
{
    for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < T * D; i += gridDim.x * blockDim.x) {
        const int64_t t = i / D, d = i - t * D;
        y[i] = __ldg(table + __ldg(index + t) * D + d);
    }
}
