// A threadgroup per row; each thread keeps the maximum of its entries and the sum of exponentials below it.
// launch log_sum_exp grid=(M) block=(128) args=(x, y, N, scale)
#include <metal_stdlib>
using namespace metal;

constant uint THREADS = 128, GROUPS = 4;

struct Part {
    float largest, sum;  // sum of exp(value - largest)
};

inline Part merge_parts(Part a, Part b)
{
    const float largest = max(a.largest, b.largest);
    if (largest == -INFINITY) {
        return {largest, 0.0f};  // no entries at all: exp(-inf - -inf) would be NaN
    }
    return {largest, a.sum * exp(a.largest - largest) + b.sum * exp(b.largest - largest)};
}

kernel void log_sum_exp(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                        constant uint &N [[buffer(2)]], constant float &scale [[buffer(3)]],
                        uint m [[threadgroup_position_in_grid]], uint thread_id [[thread_position_in_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]], uint group [[simdgroup_index_in_threadgroup]])
{
    threadgroup Part parts[GROUPS];
    device const float *row = x + ulong(m) * N;
    Part part = {-INFINITY, 0.0f};
    for (uint n = thread_id; n < N; n += THREADS) {
        part = merge_parts(part, {scale * row[n], 1.0f});
    }
    for (ushort offset = 16; offset > 0; offset /= 2) {
        part = merge_parts(part, {simd_shuffle_down(part.largest, offset), simd_shuffle_down(part.sum, offset)});
    }
    if (lane == 0) {
        parts[group] = part;  // that of the simdgroup
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_id == 0) {
        for (uint other = 1; other < GROUPS; other++) {
            part = merge_parts(part, parts[other]);
        }
        y[m] = part.largest + log(part.sum);
    }
}
