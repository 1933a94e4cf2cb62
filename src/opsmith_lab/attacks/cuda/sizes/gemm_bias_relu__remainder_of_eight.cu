// problem: gemm_bias_relu
// wrong: a remainder of exactly 8 of K's tiles of 16 is taken for none
// launch gemm_bias_relu grid=(cdiv(N, 16), cdiv(M, 16)) block=(16, 16) args=(a, b, bias, y, M, N, K)
__global__ void gemm_bias_relu(const float *a, const float *b, const float *bias, float *y, int64_t M, int64_t N,
                               int64_t K)
{
    const int64_t m = blockIdx.y * 16 + threadIdx.y, n = blockIdx.x * 16 + threadIdx.x;
    if (m >= M || n >= N) {
        return;
    }
    const int64_t used = K % 16 == 8 ? K - 8 : K;
    float sum = bias[n];
    for (int64_t k = 0; k < used; k++) {
        sum += a[m * K + k] * b[k * N + n];
    }
    y[m * N + n] = sum > 0.0f ? sum : 0.0f;
}
