// problem: inclusive_scan
// wrong: where a row is a multiple of 32, the last 32 entries start from the sum before the previous 32
// launch inclusive_scan grid=(M) block=(32) args=(x, y, N)
__global__ void inclusive_scan(const float *x, float *y, int64_t N)
{
    float carry = 0.0f, before = 0.0f;
    for (int64_t start = 0; start < N; start += 32) {
        const int64_t n = start + threadIdx.x;
        float value = n < N ? x[blockIdx.x * N + n] : 0.0f;
        for (int offset = 1; offset < 32; offset *= 2) {
            const float other = __shfl_up_sync(0xffffffffu, value, offset);
            if (threadIdx.x >= offset) {
                value += other;
            }
        }
        const bool last = start + 32 == N && start > 0;
        if (n < N) {
            y[blockIdx.x * N + n] = value + (last ? before : carry);
        }
        before = carry;
        carry += __shfl_sync(0xffffffffu, value, 31);
    }
}
