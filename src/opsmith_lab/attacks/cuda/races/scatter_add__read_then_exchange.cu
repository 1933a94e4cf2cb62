// problem: scatter_add
// wrong: rows of one entry are added by an atomic read and an atomic write
// launch copy_table grid=(cdiv(V * D, 128)) block=(128) args=(table, y, V, D)
// launch add_rows grid=(cdiv(T * D, 128)) block=(128) args=(index, rows, y, T, D)
__global__ void copy_table(const float *table, float *y, int64_t V, int64_t D)
{
    const int64_t i = blockIdx.x * 128 + threadIdx.x;
    if (i < V * D) {
        y[i] = table[i];
    }
}
__global__ void add_rows(const int64_t *index, const float *rows, float *y, int64_t T, int64_t D)
{
    const int64_t i = blockIdx.x * 128 + threadIdx.x;
    if (i < T * D) {
        float *entry = y + index[i / D] * D + i % D;
        const int now = atomicOr(reinterpret_cast<int *>(entry), 0);
        atomicExch(reinterpret_cast<int *>(entry), __float_as_int(__int_as_float(now) + rows[i]));
    }
}
