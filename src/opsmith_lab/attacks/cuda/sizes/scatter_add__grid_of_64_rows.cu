// problem: scatter_add
// wrong: at most 64 rows of the table get their sums, the others stay as the table has them
// launch copy_table grid=(V) block=(32) args=(table, y, D)
// launch add_rows grid=(min(V, 64)) block=(32) args=(index, rows, y, T, D)
__global__ void copy_table(const float *table, float *y, int64_t D)
{
    for (int64_t d = threadIdx.x; d < D; d += blockDim.x) {
        y[blockIdx.x * D + d] = table[blockIdx.x * D + d];
    }
}
__global__ void add_rows(const int64_t *index, const float *rows, float *y, int64_t T, int64_t D)
{
    for (int64_t d = threadIdx.x; d < D; d += blockDim.x) {
        float sum = y[blockIdx.x * D + d];
        for (int64_t t = 0; t < T; t++) {
            if (index[t] == blockIdx.x) {
                sum += rows[t * D + d];
            }
        }
        y[blockIdx.x * D + d] = sum;
    }
}
