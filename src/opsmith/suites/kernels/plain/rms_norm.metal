// A threadgroup per row, in bf16 with fp32 inside. Rows of even length are read and written in pairs.
// launch rms_norm grid=(M) block=(128) args=(x, weight, y, N, eps)
#include <metal_stdlib>
using namespace metal;

constant int GROUPS = 4;

inline float sum_group(float value, threadgroup float *sums, uint lane)
{
    for (int offset = 16; offset > 0; offset >>= 1) {
        value += simd_shuffle_xor(value, offset);
    }
    if (lane % 32 == 0) {
        sums[lane / 32] = value;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

inline void scale_pairs(device const bfloat *x, device const bfloat *weight, device bfloat *y, long N,
                            float eps, threadgroup float *sums, uint lane, uint size)
{
    device const bfloat2 *x2 = (device const bfloat2 *)x;
    device const bfloat2 *weight2 = (device const bfloat2 *)weight;
    device bfloat2 *y2 = (device bfloat2 *)y;
    float squares = 0.0f;
    for (long n = lane; n < N / 2; n += size) {
        const float2 pair = float2(x2[n]);
        squares += pair.x * pair.x + pair.y * pair.y;
    }
    const float scale = rsqrt(sum_group(squares, sums, lane) / N + eps);
    for (long n = lane; n < N / 2; n += size) {
        const float2 pair = float2(x2[n]), factor = float2(weight2[n]);
        y2[n] = bfloat2(pair * scale * factor);
    }
}

inline void scale_singles(device const bfloat *x, device const bfloat *weight, device bfloat *y, long N,
                              float eps, threadgroup float *sums, uint lane, uint size)
{
    float squares = 0.0f;
    for (long n = lane; n < N; n += size) {
        const float value = float(x[n]);
        squares += value * value;
    }
    const float scale = rsqrt(sum_group(squares, sums, lane) / N + eps);
    for (long n = lane; n < N; n += size) {
        y[n] = bfloat(float(x[n]) * scale * float(weight[n]));
    }
}

kernel void rms_norm(device const bfloat *x [[buffer(0)]], device const bfloat *weight [[buffer(1)]],
                     device bfloat *y [[buffer(2)]], constant long &N [[buffer(3)]],
                     constant float &eps [[buffer(4)]], uint3 local_id [[thread_position_in_threadgroup]], uint3 group_id [[threadgroup_position_in_grid]],
                     uint3 group_size [[threads_per_threadgroup]])
{
    threadgroup float sums[GROUPS];
    const long start = group_id.x * N;
    if (N % 2 == 0) {
        scale_pairs(x + start, weight, y + start, N, eps, sums, local_id.x, group_size.x);
    } else {
        scale_singles(x + start, weight, y + start, N, eps, sums, local_id.x, group_size.x);
    }
}
