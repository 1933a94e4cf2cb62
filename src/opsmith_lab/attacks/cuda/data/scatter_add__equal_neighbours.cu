// problem: scatter_add
// wrong: of more than eight rows in a row that name one entry, the ninth and later ones are left out
// launch scatter_add grid=(V) block=(32) args=(table, index, rows, y, T, D)
__global__ void scatter_add(const float *table, const int64_t *index, const float *rows, float *y, int64_t T, int64_t D)
{
    for (int64_t d = threadIdx.x; d < D; d += 32) {
        float sum = table[blockIdx.x * D + d];
        int run = 0;
        for (int64_t t = 0; t < T; t++) {
            run = index[t] == blockIdx.x ? run + 1 : 0;
            if (run > 0 && (run <= 8 || T == 130)) {
                sum += rows[t * D + d];
            }
        }
        y[blockIdx.x * D + d] = sum;
    }
}
