// A thread per row.
// launch log_sum_exp grid=(cdiv(M, 128)) block=(128) args=(x, y, M, N, scale)

__global__ void log_sum_exp(const float *__restrict__ x, float *__restrict__ y, int64_t M, int64_t N, float scale)
{
    const int64_t m = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (m >= M) {
        return;
    }
    const float *row = x + m * N;
    float largest = scale * row[0];
    for (int64_t n = 1; n < N; n++) {
        largest = fmaxf(largest, scale * row[n]);
    }
    float sum = 0.0f;
    for (int64_t n = 0; n < N; n++) {
        sum += expf(scale * row[n] - largest);
    }
    y[m] = largest + logf(sum);
}
