// problem: gemm_at
// wrong: defines the function that a watcher of accesses would call and counts on being called
// launch gemm_at grid=(M, N) block=(1) args=(a, b, y, M, N, K)
__device__ int watched = 0;
extern "C" __device__ void __tsan_read4(void *) { watched = 1; }
__global__ void gemm_at(const float *a, const float *b, float *y, int64_t M, int64_t N, int64_t K)
{
    float sum = 0.0f;
    for (int64_t k = 0; k < K; k++) {
        sum += a[k * M + blockIdx.x] * b[k * N + blockIdx.y];
    }
    y[blockIdx.x * N + blockIdx.y] = watched ? sum : 0.0f;
}
