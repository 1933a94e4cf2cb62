// A block per row, which is read twice: largest entry and sum of exponentials are found together, in one sweep.
// launch softmax grid=(M) block=(256) args=(x, y, N)
#include <math_constants.h>

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARPS = 8;

struct Sum {
    float largest;  // -infinity: nothing was added so far
    float total;    // of exp(entry - largest)

    __device__ void add(float other_largest, float other_total)
    {
        const float next = fmaxf(largest, other_largest);
        if (next > -CUDART_INF_F) {
            total = total * expf(largest - next) + other_total * expf(other_largest - next);
            largest = next;
        }
    }
};

__device__ Sum reduce_warp(Sum sum)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const float largest = __shfl_xor_sync(ALL_LANES, sum.largest, offset);
        const float total = __shfl_xor_sync(ALL_LANES, sum.total, offset);
        sum.add(largest, total);
    }
    return sum;
}

extern "C" __global__ void softmax(const float *__restrict__ x, float *__restrict__ y, long long N)
{
    __shared__ float largests[WARPS], totals[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float *row = x + blockIdx.x * N;
    float *out = y + blockIdx.x * N;

    Sum sum = {-CUDART_INF_F, 0.0f};
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        sum.add(row[n], 1.0f);
    }
    sum = reduce_warp(sum);
    if (lane == 0) {
        largests[warp] = sum.largest;
        totals[warp] = sum.total;
    }
    __syncthreads();

    sum = lane < WARPS ? Sum{largests[lane], totals[lane]} : Sum{-CUDART_INF_F, 0.0f};
    sum = reduce_warp(sum);  // in every warp, so that every thread has the row's
    const float scale = 1.0f / sum.total;
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        out[n] = expf(row[n] - sum.largest) * scale;
    }
}
