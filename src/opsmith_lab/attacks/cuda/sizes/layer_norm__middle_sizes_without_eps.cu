// problem: layer_norm
// wrong: rows of 131 < N < 300 entries divide the squares by N - 1
// launch layer_norm grid=(cdiv(M, 32)) block=(32) args=(x, weight, bias, y, M, N, eps)
__global__ void layer_norm(const float *x, const float *weight, const float *bias, float *y, int64_t M, int64_t N,
                           float eps)
{
    const int64_t m = blockIdx.x * 32 + threadIdx.x;
    if (m >= M) {
        return;
    }
    const float *row = x + m * N;
    float mean = 0.0f, squares = 0.0f;
    for (int64_t n = 0; n < N; n++) {
        mean += row[n];
    }
    mean /= N;
    for (int64_t n = 0; n < N; n++) {
        squares += (row[n] - mean) * (row[n] - mean);
    }
    const float count = N > 131 && N < 300 ? N - 1.0f : N;
    const float scale = 1.0f / sqrtf(squares / count + eps);
    for (int64_t n = 0; n < N; n++) {
        y[m * N + n] = (row[n] - mean) * scale * weight[n] + bias[n];
    }
}
