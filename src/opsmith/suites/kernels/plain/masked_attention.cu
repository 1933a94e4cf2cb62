// A block per query. Keys come in tiles of 128: a warp per score, then the tile's exponentials are added to what was
// gathered so far, which is scaled whenever a larger score turns up. Query and result lie in dynamic shared memory.
// launch masked_attention grid=(L, H) block=(128) shared=8 * D args=(q, k, v, mask, y, L, S, D)
#include <cuda_fp16.h>
#include <math_constants.h>

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int KEYS = 128, WARPS = KEYS / 32;

struct Largest {
    static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};
struct Sum {
    static __device__ float combine(float a, float b) { return a + b; }
};

template <class Operation>
__device__ float reduce_warp(float value)
{
    for (int offset = 16; offset > 0; offset /= 2) {
        value = Operation::combine(value, __shfl_xor_sync(ALL_LANES, value, offset));
    }
    return value;
}

template <class Operation>
__device__ float reduce_block(float value, float *parts)
{
    value = reduce_warp<Operation>(value);
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = parts[0];
    for (int warp = 1; warp < WARPS; warp++) {
        value = Operation::combine(value, parts[warp]);
    }
    __syncthreads();  // the next call writes to `parts`
    return value;
}

extern "C" __global__ void __launch_bounds__(KEYS)
masked_attention(const half *__restrict__ q, const half *__restrict__ k, const half *__restrict__ v,
                 const bool *__restrict__ mask, half *__restrict__ y, long long L, long long S, long long D)
{
    extern __shared__ float dynamic[];
    float *query = dynamic, *result = dynamic + D;
    __shared__ float weights[KEYS], parts[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long l = blockIdx.x, h = blockIdx.y;

    const float scale = rsqrtf(static_cast<float>(D));
    for (long long d = threadIdx.x; d < D; d += KEYS) {
        query[d] = __half2float(q[(h * L + l) * D + d]) * scale;
        result[d] = 0.0f;
    }
    __syncthreads();

    float largest = -CUDART_INF_F, sum = 0.0f;  // of all tiles so far, the same in every thread
    for (long long first = 0; first < S; first += KEYS) {
        for (int i = warp; i < KEYS; i += WARPS) {
            const long long s = first + i;
            float score = -CUDART_INF_F;
            if (s < S && mask[l * S + s]) {  // the same in all lanes
                score = 0.0f;
                for (long long d = lane; d < D; d += 32) {
                    score += query[d] * __half2float(k[(h * S + s) * D + d]);
                }
                score = reduce_warp<Sum>(score);
            }
            if (lane == 0) {
                weights[i] = score;
            }
        }
        __syncthreads();

        const float score = weights[threadIdx.x];
        const float next = fmaxf(largest, reduce_block<Largest>(score, parts));
        if (next == -CUDART_INF_F) {
            continue;  // the whole block: no key so far may be seen
        }
        const float weight = expf(score - next), correction = expf(largest - next);
        weights[threadIdx.x] = weight;
        sum = sum * correction + reduce_block<Sum>(weight, parts);
        largest = next;

        const int count = static_cast<int>(min(S - first, static_cast<long long>(KEYS)));
        for (long long d = threadIdx.x; d < D; d += KEYS) {
            float total = result[d] * correction;
            for (int i = 0; i < count; i++) {
                total += weights[i] * __half2float(v[(h * S + first + i) * D + d]);
            }
            result[d] = total;
        }
        __syncthreads();  // all have read the weights before the next tile overwrites them
    }

    for (long long d = threadIdx.x; d < D; d += KEYS) {
        y[(h * L + l) * D + d] = __float2half_rn(sum > 0.0f ? result[d] / sum : 0.0f);
    }
}
