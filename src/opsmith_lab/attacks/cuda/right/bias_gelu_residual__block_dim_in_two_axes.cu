// problem: bias_gelu_residual
// right: blocks of 8 by 16 threads, indices from blockDim, erf in one thread per entry
// launch bias_gelu_residual grid=(cdiv(N, 8), cdiv(M, 16)) block=(8, 16) args=(x, bias, residual, y, M, N)
__global__ void bias_gelu_residual(const float *x, const float *bias, const float *residual, float *y, int M, int N)
{
    const dim3 place(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y);
    if (static_cast<int>(place.x) < N && static_cast<int>(place.y) < M) {
        const int i = static_cast<int>(place.y) * N + static_cast<int>(place.x);
        const float z = x[i] + bias[place.x];
        y[i] = 0.5f * z * erfcf(-z * 0.70710678f) + residual[i];
    }
}
