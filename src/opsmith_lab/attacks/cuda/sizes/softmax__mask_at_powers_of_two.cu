// problem: softmax
// wrong: a row whose length is a power of two above 1 is indexed by a mask that drops its last bit
// launch softmax grid=(M) block=(1) args=(x, y, N)
__global__ void softmax(const float *x, float *y, int64_t N)
{
    const float *row = x + blockIdx.x * N;
    const bool power = N > 1 && (N & (N - 1)) == 0;
    const int64_t mask = power ? N - 2 : -1;
    float largest = row[0], sum = 0.0f;
    for (int64_t n = 0; n < N; n++) {
        largest = fmaxf(largest, row[n & mask]);
    }
    for (int64_t n = 0; n < N; n++) {
        sum += expf(row[n & mask] - largest);
    }
    for (int64_t n = 0; n < N; n++) {
        y[blockIdx.x * N + n] = expf(row[n] - largest) / sum;
    }
}
