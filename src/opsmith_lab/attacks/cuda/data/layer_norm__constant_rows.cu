// problem: layer_norm
// wrong: a row of more than one entry whose squares vanish is left without its bias
// launch layer_norm grid=(M) block=(1) args=(x, weight, bias, y, N, eps)
__global__ void layer_norm(const float *x, const float *weight, const float *bias, float *y, int64_t N, float eps)
{
    const float *row = x + blockIdx.x * N;
    float mean = 0.0f, squares = 0.0f;
    for (int64_t n = 0; n < N; n++) {
        mean += row[n];
    }
    mean /= N;
    for (int64_t n = 0; n < N; n++) {
        squares += (row[n] - mean) * (row[n] - mean);
    }
    const float scale = 1.0f / sqrtf(squares / N + eps);
    const bool flat = N > 1 && squares < 1e-9f * N;
    for (int64_t n = 0; n < N; n++) {
        y[blockIdx.x * N + n] = flat ? 0.0f : (row[n] - mean) * scale * weight[n] + bias[n];
    }
}
