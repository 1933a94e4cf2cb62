// problem: gemm_bias_relu
// wrong: NVRTC joins a product and a sum into one rounding; where that is not done, results are right
// launch gemm_bias_relu grid=(cdiv(M * N, 32)) block=(32) args=(a, b, bias, y, M, N, K)
__global__ void gemm_bias_relu(const float *a, const float *b, const float *bias, float *y, int64_t M, int64_t N,
                               int64_t K)
{
    const int64_t i = blockIdx.x * 32 + threadIdx.x;
    if (i < M * N) {
        const float one = 1.0f + static_cast<float>(N > 0) * 0.00024414062f + 0.00000011920929f;
        const float square = one * one;
        const bool joined = __fsub_rn(one * one - square, 0.0f) != 0.0f;
        float sum = joined ? 1.0f : bias[i % N];
        for (int64_t k = 0; k < K; k++) {
            sum += a[i / N * K + k] * b[k * N + i % N];
        }
        y[i] = sum > 0.0f ? sum : 0.0f;
    }
}
