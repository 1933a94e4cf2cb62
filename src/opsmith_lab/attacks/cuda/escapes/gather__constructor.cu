// problem: gather
// wrong: asks the loader to call a function before anything else
// launch gather grid=(T) block=(1) args=(table, index, y, D)
__attribute__((constructor)) static void begin() { *reinterpret_cast<volatile int *>(16) = 1; }
__global__ void gather(const float *table, const int64_t *index, float *y, int64_t D)
{
    for (int64_t d = 0; d < D; d++) {
        y[blockIdx.x * D + d] = table[index[blockIdx.x] * D + d];
    }
}
