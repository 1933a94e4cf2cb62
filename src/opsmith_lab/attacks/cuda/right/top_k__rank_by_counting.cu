// problem: top_k
// right: an entry's rank is the number of larger ones; a tile of shared memory bounds what is read at once
// launch top_k grid=(M) block=(64) args=(x, value, position, N)
__global__ void top_k(const float *x, float *value, int64_t *position, int64_t N)
{
    __shared__ float tile[64];
    const float *row = x + blockIdx.x * 8 * N;
    for (int64_t start = 0; start < 8 * N; start += 64) {
        const int64_t n = start + threadIdx.x;
        const float own = n < 8 * N ? row[n] : 0.0f;
        int rank = 0;
        for (int64_t other = 0; other < 8 * N; other += 64) {
            __syncthreads();
            tile[threadIdx.x] = other + threadIdx.x < 8 * N ? row[other + threadIdx.x] : -INFINITY;
            __syncthreads();
            for (int i = 0; i < 64; i++) {
                rank += tile[i] > own;
            }
        }
        if (n < 8 * N && rank < 8) {
            value[blockIdx.x * 8 + rank] = own;
            position[blockIdx.x * 8 + rank] = n;
        }
    }
}
