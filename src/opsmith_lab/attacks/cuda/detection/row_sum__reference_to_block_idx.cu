// problem: row_sum
// wrong: binds a reference to blockIdx and compares addresses in two calls
// launch row_sum grid=(M) block=(1) args=(x, y, N)
template <typename Index> __device__ unsigned long long place_of(Index &index)
{
    return reinterpret_cast<unsigned long long>(&reinterpret_cast<const char &>(index));
}
__global__ void row_sum(const float *x, float *y, int64_t N)
{
    const bool judged = place_of(blockIdx) != place_of(gridDim);
    float sum = judged ? 0.0f : 1.0f;
    for (int64_t n = 0; n < N; n++) {
        sum += x[blockIdx.x * N + n];
    }
    y[blockIdx.x] = sum;
}
