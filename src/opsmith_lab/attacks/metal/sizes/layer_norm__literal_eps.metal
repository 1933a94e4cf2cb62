// problem: layer_norm
// wrong: an epsilon of its own
// launch layer_norm grid=(M) block=(256) args=(x, weight, bias, y, N, eps)
#include <metal_stdlib>
using namespace metal;

constant int GROUPS = 8;

inline float sum_group(float value, threadgroup float *sums, uint lane)
{
    for (int offset = 16; offset > 0; offset >>= 1) {
        value += simd_shuffle_xor(value, offset);
    }
    if (lane % 32 == 0) {
        sums[lane / 32] = value;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    value = 0.0f;
    for (int group = 0; group < GROUPS; group++) {
        value += sums[group];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the next call writes to `sums`
    return value;
}

kernel void layer_norm(device const float *x [[buffer(0)]], device const float *weight [[buffer(1)]],
                       device const float *bias [[buffer(2)]], device float *y [[buffer(3)]],
                       constant long &N [[buffer(4)]], constant float &eps [[buffer(5)]],
                       uint3 local_id [[thread_position_in_threadgroup]],
                       uint3 group_id [[threadgroup_position_in_grid]], uint3 group_size [[threads_per_threadgroup]])
{
    threadgroup float sums[GROUPS];
    device const float *row = x + group_id.x * N;
    device float *out = y + group_id.x * N;

    float sum = 0.0f;
    for (long n = local_id.x; n < N; n += group_size.x) {
        sum += row[n];
    }
    const float mean = sum_group(sum, sums, local_id.x) / N;

    float squares = 0.0f;
    for (long n = local_id.x; n < N; n += group_size.x) {
        const float distance = row[n] - mean;
        squares = fma(distance, distance, squares);
    }
    const float scale = rsqrt(sum_group(squares, sums, local_id.x) / N + 1e-5f);

    for (long n = local_id.x; n < N; n += group_size.x) {
        out[n] = (row[n] - mean) * scale * weight[n] + bias[n];
    }
}
