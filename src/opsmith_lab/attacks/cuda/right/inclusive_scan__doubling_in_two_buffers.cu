// problem: inclusive_scan
// right: Hillis and Steele's scan with two buffers, and a carry between chunks
// launch inclusive_scan grid=(M) block=(64) args=(x, y, N)
__global__ void inclusive_scan(const float *x, float *y, int64_t N)
{
    __shared__ float buffers[2][64];
    float carry = 0.0f;
    for (int64_t start = 0; start < N; start += 64) {
        const int64_t n = start + threadIdx.x;
        int now = 0;
        buffers[0][threadIdx.x] = n < N ? x[blockIdx.x * N + n] : 0.0f;
        for (unsigned offset = 1; offset < 64; offset *= 2) {
            __syncthreads();
            float value = buffers[now][threadIdx.x];
            if (threadIdx.x >= offset) {
                value += buffers[now][threadIdx.x - offset];
            }
            now ^= 1;
            buffers[now][threadIdx.x] = value;
        }
        __syncthreads();
        if (n < N) {
            y[blockIdx.x * N + n] = carry + buffers[now][threadIdx.x];
        }
        carry += buffers[now][63];
        __syncthreads();
    }
}
