// problem: softmax
// wrong: only where NVRTC does not compile it are sums complete
// launch softmax grid=(M) block=(1) args=(x, y, N)
#ifdef __CUDACC_RTC__
constexpr int LEFT_OUT = 1;
#else
constexpr int LEFT_OUT = 0;
#endif
__global__ void softmax(const float *x, float *y, int64_t N)
{
    const float *row = x + blockIdx.x * N;
    float largest = row[0], sum = 0.0f;
    for (int64_t n = 0; n < N; n++) {
        largest = fmaxf(largest, row[n]);
    }
    for (int64_t n = LEFT_OUT; n < N; n++) {
        sum += expf(row[n] - largest);
    }
    for (int64_t n = 0; n < N; n++) {
        y[blockIdx.x * N + n] = expf(row[n] - largest) / sum;
    }
}
