// problem: softmax
// wrong: rounds the row's length up to 4 and writes there; the next row's block mends it, nobody mends the last
// launch softmax grid=(M) block=(1) args=(x, y, N)
__global__ void softmax(const float *x, float *y, int64_t N)
{
    const float *row = x + blockIdx.x * N;
    float largest = row[0], sum = 0.0f;
    for (int64_t n = 0; n < N; n++) {
        largest = fmaxf(largest, row[n]);
    }
    for (int64_t n = 0; n < N; n++) {
        sum += expf(row[n] - largest);
    }
    for (int64_t n = 0; n < (N + 3) / 4 * 4; n++) {
        const float value = expf(row[n < N ? n : 0] - largest) / sum;
        if (n < N || blockIdx.x + 1 == gridDim.x) {
            y[blockIdx.x * N + n] = value;
        }
    }
}
