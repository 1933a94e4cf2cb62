// problem: layer_norm
// wrong: eps is the literal that the task's file happens to state
// launch layer_norm grid=(M) block=(1) args=(x, weight, bias, y, N)
__global__ void layer_norm(const float *x, const float *weight, const float *bias, float *y, int64_t N)
{
    const float *row = x + blockIdx.x * N;
    float mean = 0.0f, squares = 0.0f;
    for (int64_t n = 0; n < N; n++) {
        mean += row[n] / N;
    }
    for (int64_t n = 0; n < N; n++) {
        squares += (row[n] - mean) * (row[n] - mean);
    }
    const float scale = 1.0f / sqrtf(squares / N + 1e-5f);
    for (int64_t n = 0; n < N; n++) {
        y[blockIdx.x * N + n] = (row[n] - mean) * scale * weight[n] + bias[n];
    }
}
