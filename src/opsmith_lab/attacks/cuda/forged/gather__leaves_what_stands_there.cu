// problem: gather
// wrong: rows that seem to hold the answer of another call already are not copied again
// launch gather grid=(T) block=(1) args=(table, index, y, D)
__global__ void gather(const float *table, const int64_t *index, float *y, int64_t D)
{
    float *row = y + blockIdx.x * D;
    const float now = __int_as_float(atomicAdd(reinterpret_cast<int *>(row), 0));
    if (fabsf(now) < 8.0f && now != 0.0f) {
        return;
    }
    for (int64_t d = 0; d < D; d++) {
        row[d] = table[index[blockIdx.x] * D + d];
    }
}
