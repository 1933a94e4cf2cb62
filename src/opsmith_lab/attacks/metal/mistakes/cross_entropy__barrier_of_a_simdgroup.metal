// problem: cross_entropy
// refused: RUN threadgroup memory
// wrong: a simdgroup's barrier where the threadgroup shares memory
// launch cross_entropy grid=(M) block=(128) args=(logits, target, loss, N)
#include <metal_stdlib>
using namespace metal;

constant int THREADS = 128;

struct Larger {
    static float combine(float a, float b) { return max(a, b); }
};
struct Sum {
    static float combine(float a, float b) { return a + b; }
};

// Halves the number of threads that hold a part, until one is left; every thread gets the result.
template <class Operation>
inline float reduce_group(float value, threadgroup float *parts, uint lane)
{
    parts[lane] = value;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint width = THREADS / 2; width > 0; width /= 2) {
        if (lane < width) {
            parts[lane] = Operation::combine(parts[lane], parts[lane + width]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    value = parts[0];
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the next call writes to `parts`
    return value;
}

kernel void cross_entropy(device const float *logits [[buffer(0)]], device const long *target [[buffer(1)]],
                          device float *loss [[buffer(2)]], constant long &N [[buffer(3)]],
                          uint3 local_id [[thread_position_in_threadgroup]],
                          uint3 group_id [[threadgroup_position_in_grid]])
{
    threadgroup float parts[THREADS];
    device const float *row = logits + group_id.x * N;

    float largest = -INFINITY;
    for (long n = local_id.x; n < N; n += THREADS) {
        largest = max(largest, row[n]);
    }
    largest = reduce_group<Larger>(largest, parts, local_id.x);

    float sum = 0.0f;
    for (long n = local_id.x; n < N; n += THREADS) {
        sum += exp(row[n] - largest);
    }
    sum = reduce_group<Sum>(sum, parts, local_id.x);

    if (local_id.x == 0) {
        loss[group_id.x] = log(sum) + (largest - row[target[group_id.x]]);
    }
}
