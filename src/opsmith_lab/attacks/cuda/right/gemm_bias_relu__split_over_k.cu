// problem: gemm_bias_relu
// right: four parts of K are added by atomics to a workspace that a launch before has cleared
// workspace total: fp32 [M, N]
// launch clear grid=(cdiv(M * N, 64)) block=(64) args=(total, M, N)
// launch add grid=(cdiv(M * N, 64), 4) block=(64) args=(a, b, total, M, N, K)
// launch finish grid=(cdiv(M * N, 64)) block=(64) args=(total, bias, y, M, N)
__global__ void clear(float *total, int64_t M, int64_t N)
{
    const int64_t i = blockIdx.x * 64 + threadIdx.x;
    if (i < M * N) {
        total[i] = 0.0f;
    }
}
__global__ void add(const float *a, const float *b, float *total, int64_t M, int64_t N, int64_t K)
{
    const int64_t i = blockIdx.x * 64 + threadIdx.x;
    if (i < M * N) {
        const int64_t part = (K + 3) / 4, begin = blockIdx.y * part;
        float sum = 0.0f;
        for (int64_t k = begin; k < begin + part && k < K; k++) {
            sum += a[i / N * K + k] * b[k * N + i % N];
        }
        atomicAdd(total + i, sum);
    }
}
__global__ void finish(const float *total, const float *bias, float *y, int64_t M, int64_t N)
{
    const int64_t i = blockIdx.x * 64 + threadIdx.x;
    if (i < M * N) {
        y[i] = fmaxf(total[i] + bias[i % N], 0.0f);
    }
}
