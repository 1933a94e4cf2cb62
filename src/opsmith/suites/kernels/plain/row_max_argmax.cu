// A block per row: each thread scans every 128th entry, then pairs of value and position are merged, warps first.
// launch row_max_argmax grid=(M) block=(128) args=(x, value, position, N)
#include <math_constants.h>

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARPS = 4;

struct Peak {
    float value;
    long long position;  // of equal values, the first one counts

    __device__ void merge(float other, long long place)
    {
        if (other > value || (other == value && place < position)) {
            value = other;
            position = place;
        }
    }
};

__device__ Peak reduce_warp(Peak peak)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(ALL_LANES, peak.value, offset);
        const long long place = __shfl_xor_sync(ALL_LANES, peak.position, offset);
        peak.merge(other, place);
    }
    return peak;
}

extern "C" __global__ void row_max_argmax(const float *__restrict__ x, float *__restrict__ value,
                                          long long *__restrict__ position, long long N)
{
    __shared__ float values[WARPS];
    __shared__ long long positions[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long m = blockIdx.x;

    Peak peak = {-CUDART_INF_F, N};
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        peak.merge(x[m * N + n], n);
    }
    peak = reduce_warp(peak);
    if (lane == 0) {
        values[warp] = peak.value;
        positions[warp] = peak.position;
    }
    __syncthreads();

    if (threadIdx.x == 0) {
        for (int other = 1; other < WARPS; other++) {
            peak.merge(values[other], positions[other]);
        }
        value[m] = peak.value;
        position[m] = peak.position;
    }
}
