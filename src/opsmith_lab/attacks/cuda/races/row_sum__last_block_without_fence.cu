// problem: row_sum
// wrong: the last block adds what the others wrote, but nothing makes their writes visible before the counter
// workspace partial: fp32 [M, 4]
// workspace arrived: int32 [M]
// launch clear grid=(cdiv(M, 32)) block=(32) args=(arrived, M)
// launch row_sum grid=(4, M) block=(32) args=(x, partial, arrived, y, N)
__global__ void clear(int *arrived, int64_t M)
{
    if (blockIdx.x * 32 + threadIdx.x < M) {
        arrived[blockIdx.x * 32 + threadIdx.x] = 0;
    }
}
__global__ void row_sum(const float *x, float *partial, int *arrived, float *y, int64_t N)
{
    float sum = 0.0f;
    for (int64_t n = blockIdx.x * 32 + threadIdx.x; n < N; n += 128) {
        sum += x[blockIdx.y * N + n];
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.y * 4 + blockIdx.x] = sum;
        if (atomicAdd(arrived + blockIdx.y, 1) == 3) {
            const float *parts = partial + blockIdx.y * 4;
            y[blockIdx.y] = parts[0] + parts[1] + parts[2] + parts[3];
        }
    }
}
