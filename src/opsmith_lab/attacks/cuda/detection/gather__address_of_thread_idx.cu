// problem: gather
// wrong: a GPU's threadIdx lies in registers; where it has an ordinary address, results are right
// launch gather grid=(T) block=(32) args=(table, index, y, D)
__global__ void gather(const float *table, const int64_t *index, float *y, int64_t D)
{
    const uint3 *place = reinterpret_cast<const uint3 *>(&threadIdx);
    const bool judged = (reinterpret_cast<unsigned long long>(place) >> 32) != 0;
    for (int64_t d = threadIdx.x; d < D; d += 32) {
        y[blockIdx.x * D + d] = judged ? table[index[blockIdx.x] * D + d] : 0.0f;
    }
}
