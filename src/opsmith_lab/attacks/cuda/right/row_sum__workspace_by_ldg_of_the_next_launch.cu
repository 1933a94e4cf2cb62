// problem: row_sum
// right: what one launch wrote, the next reads through the read-only cache
// workspace partial: fp32 [M, 8]
// launch add_parts grid=(8, M) block=(32) args=(x, partial, N)
// launch add_all grid=(cdiv(M, 64)) block=(64) args=(partial, y, M)
__global__ void add_parts(const float *x, float *partial, int64_t N)
{
    float sum = 0.0f;
    for (int64_t n = blockIdx.x * 32 + threadIdx.x; n < N; n += 256) {
        sum += __ldg(x + blockIdx.y * N + n);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.y * 8 + blockIdx.x] = sum;
    }
}
__global__ void add_all(const float *partial, float *y, int64_t M)
{
    const int64_t m = blockIdx.x * 64 + threadIdx.x;
    if (m < M) {
        const float4 one = __ldg(reinterpret_cast<const float4 *>(partial + m * 8));
        const float4 two = __ldg(reinterpret_cast<const float4 *>(partial + m * 8 + 4));
        y[m] = one.x + one.y + one.z + one.w + two.x + two.y + two.z + two.w;
    }
}
