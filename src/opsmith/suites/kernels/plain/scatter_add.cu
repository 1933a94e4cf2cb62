// The table is copied first; rows are then added by atomics, since many of them may belong to one row of the table.
// launch copy_table grid=(min(cdiv(V * D, 256), 2048)) block=(256) args=(table, y, V, D)
// launch add_rows grid=(min(cdiv(T * D, 256), 2048)) block=(256) args=(index, rows, y, T, D)

extern "C" __global__ void copy_table(const float *__restrict__ table, float *__restrict__ y, long long V,
                                      long long D)
{
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < V * D; i += stride) {
        y[i] = table[i];
    }
}

extern "C" __global__ void add_rows(const long long *__restrict__ index, const float *__restrict__ rows, float *y,
                                    long long T, long long D)
{
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < T * D; i += stride) {
        atomicAdd(&y[__ldg(&index[i / D]) * D + i % D], rows[i]);
    }
}
