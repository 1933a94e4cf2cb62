// A block walks along a row in tiles of 256: a scan within each warp, one over the warps' sums, and what came before.
// launch inclusive_scan grid=(M) block=(256) args=(x, y, N)

constexpr int WARPS = 8;

__device__ float scan_warp(float value, int lane)
{
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const float before = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset) {
            value += before;
        }
    }
    return value;
}

extern "C" __global__ void inclusive_scan(const float *__restrict__ x, float *__restrict__ y, long long N)
{
    __shared__ float sums[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float *row = x + blockIdx.x * N;
    float *out = y + blockIdx.x * N;

    float carry = 0.0f;  // the sum of all tiles before, the same in every thread
    for (long long start = 0; start < N; start += blockDim.x) {
        const long long n = start + threadIdx.x;
        float value = scan_warp(n < N ? row[n] : 0.0f, lane);
        if (lane == 31) {
            sums[warp] = value;
        }
        __syncthreads();
        if (warp == 0) {
            const float sum = scan_warp(lane < WARPS ? sums[lane] : 0.0f, lane);
            if (lane < WARPS) {
                sums[lane] = sum;
            }
        }
        __syncthreads();
        value += warp > 0 ? carry + sums[warp - 1] : carry;
        if (n < N) {
            out[n] = value;
        }
        carry += sums[WARPS - 1];
        __syncthreads();  // all have read the sums before the next tile overwrites them
    }
}
