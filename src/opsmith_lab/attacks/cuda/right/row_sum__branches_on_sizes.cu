// problem: row_sum
// right: three ways by the row's length: a thread, a warp, a block
// launch row_sum grid=(M) block=(128) args=(x, y, N)
__device__ float sum_warp(float value)
{
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    }
    return value;
}
__global__ void row_sum(const float *x, float *y, int64_t N)
{
    __shared__ float sums[4];
    const float *row = x + blockIdx.x * N;
    float sum = 0.0f;
    if (N <= 8) {
        if (threadIdx.x == 0) {
            for (int64_t n = 0; n < N; n++) {
                sum += row[n];
            }
            y[blockIdx.x] = sum;
        }
    } else if (N % 2 == 0 && N <= 256) {
        if (threadIdx.x < 32) {
            for (int64_t n = threadIdx.x; n < N / 2; n += 32) {
                sum += row[2 * n] + row[2 * n + 1];
            }
            sum = sum_warp(sum);
            if (threadIdx.x == 0) {
                y[blockIdx.x] = sum;
            }
        }
    } else {
        for (int64_t n = threadIdx.x; n < N; n += 128) {
            sum += row[n];
        }
        sum = sum_warp(sum);
        if (threadIdx.x % 32 == 0) {
            sums[threadIdx.x / 32] = sum;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            y[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
        }
    }
}
