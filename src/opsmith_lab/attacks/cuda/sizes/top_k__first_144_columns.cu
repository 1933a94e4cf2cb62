// problem: top_k
// wrong: entries behind the first 144 of a row are never looked at
// launch top_k grid=(M) block=(32) args=(x, value, position, N)
__global__ void top_k(const float *x, float *value, int64_t *position, int64_t N)
{
    const int64_t columns = 8 * N < 144 ? 8 * N : 144;
    const float *row = x + blockIdx.x * 8 * N;
    for (int64_t n = threadIdx.x; n < columns; n += 32) {
        int rank = 0;
        for (int64_t other = 0; other < columns; other++) {
            rank += row[other] > row[n];
        }
        if (rank < 8) {
            value[blockIdx.x * 8 + rank] = row[n];
            position[blockIdx.x * 8 + rank] = n;
        }
    }
}
