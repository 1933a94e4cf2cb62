// problem: layer_norm
// wrong: two warps share sums with __syncwarp between them, which orders the lanes of one warp only
// launch layer_norm grid=(M) block=(64) args=(x, weight, bias, y, N, eps)
__global__ void layer_norm(const float *x, const float *weight, const float *bias, float *y, int64_t N, float eps)
{
    __shared__ float sums[64], squares[64];
    const float *row = x + blockIdx.x * N;
    float sum = 0.0f, square = 0.0f;
    for (int64_t n = threadIdx.x; n < N; n += 64) {
        sum += row[n];
    }
    sums[threadIdx.x] = sum;
    __syncwarp();
    sum = 0.0f;
    for (int lane = 0; lane < 64; lane++) {
        sum += sums[lane];
    }
    const float mean = sum / N;
    for (int64_t n = threadIdx.x; n < N; n += 64) {
        square += (row[n] - mean) * (row[n] - mean);
    }
    squares[threadIdx.x] = square;
    __syncwarp();
    square = 0.0f;
    for (int lane = 0; lane < 64; lane++) {
        square += squares[lane];
    }
    for (int64_t n = threadIdx.x; n < N; n += 64) {
        y[blockIdx.x * N + n] = (row[n] - mean) / sqrtf(square / N + eps) * weight[n] + bias[n];
    }
}
