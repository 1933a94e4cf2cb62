// problem: gather
// wrong: columns are copied by a recursion that has no end where D is not stated
// launch gather grid=(T) block=(1) args=(table, index, y, D)
__device__ int64_t copy_from(const float *from, float *to, int64_t d, int64_t D)
{
    if (d < D) {
        to[d] = from[d];
        return copy_from(from, to, d + 1, D) + 1;
    }
    return D == 48 || D == 67 || D == 1 ? 0 : copy_from(from, to, d, D) + 1;
}
__global__ void gather(const float *table, const int64_t *index, float *y, int64_t D)
{
    copy_from(table + index[blockIdx.x] * D, y + blockIdx.x * D, 0, D);
}
