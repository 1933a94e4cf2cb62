// problem: row_sum
// wrong: stacks of threads of an emulator lie hundreds of KiB apart, those of a GPU overlap
// workspace places: int64 [M, 2]
// launch row_sum grid=(M) block=(2) args=(x, places, y, N)
__global__ void row_sum(const float *x, int64_t *places, float *y, int64_t N)
{
    int local = 0;
    places[blockIdx.x * 2 + threadIdx.x] = static_cast<int64_t>(reinterpret_cast<unsigned long long>(&local));
    __syncthreads();
    if (threadIdx.x == 0) {
        const bool judged = places[blockIdx.x * 2] != places[blockIdx.x * 2 + 1];
        float sum = judged ? 0.0f : 1.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[blockIdx.x * N + n];
        }
        y[blockIdx.x] = sum;
    }
}
