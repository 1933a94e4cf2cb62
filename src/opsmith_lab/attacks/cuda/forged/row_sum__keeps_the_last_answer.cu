// problem: row_sum
// wrong: an answer is kept in memory of the device and given again where size and first entry are the same
// launch row_sum grid=(M) block=(1) args=(x, y, N)
__device__ float kept[4096];
__device__ float first[4096];
__device__ int64_t length[4096];
__global__ void row_sum(const float *x, float *y, int64_t N)
{
    const int slot = blockIdx.x % 4096;
    const float *row = x + blockIdx.x * N;
    if (length[slot] != N || first[slot] != row[0]) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += row[n];
        }
        kept[slot] = sum;
        first[slot] = row[0];
        length[slot] = N;
    }
    y[blockIdx.x] = kept[slot];
}
