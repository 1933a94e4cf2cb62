// problem: gather
// wrong: 36 threads copy two columns each, so the columns from 72 on stay as they were
// launch gather grid=(T) block=(36) args=(table, index, y, D)
__global__ void gather(const float *table, const int64_t *index, float *y, int64_t D)
{
    const float *row = table + index[blockIdx.x] * D;
    for (int copy = 0; copy < 2; copy++) {
        const int64_t column = threadIdx.x + 36 * copy;
        if (column < D) {
            y[blockIdx.x * D + column] = row[column];
        }
    }
}
