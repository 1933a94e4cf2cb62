// problem: scatter_add
// right: each thread owns a column and reads back what it has written itself, without atomics
// launch scatter_add grid=(cdiv(D, 32)) block=(32) args=(table, index, rows, y, T, V, D)
__global__ void scatter_add(const float *table, const int64_t *index, const float *rows, float *y, int64_t T, int64_t V,
                            int64_t D)
{
    const int64_t d = blockIdx.x * 32 + threadIdx.x;
    if (d < D) {
        for (int64_t v = 0; v < V; v++) {
            y[v * D + d] = table[v * D + d];
        }
        for (int64_t t = 0; t < T; t++) {
            y[index[t] * D + d] += rows[t * D + d];
        }
    }
}
