// Elementwise: four entries at a time where rows are a multiple of four, so that all four are of one row, else one.
// launch bias_gelu_residual grid=(min(cdiv(M * N, 256), 2048)) block=(256) args=(x, bias, residual, y, M, N)
#include <metal_stdlib>
using namespace metal;

// 1 - erf(z) for z >= 0, within 1.2e-7 of itself: the Chebyshev fit of Numerical Recipes (erfcc). Metal has no erf.
inline float compute_erfc(float z)
{
    const float t = 1.0f / (1.0f + 0.5f * z);
    float p = 0.17087277f;
    p = p * t - 0.82215223f;
    p = p * t + 1.48851587f;
    p = p * t - 1.13520398f;
    p = p * t + 0.27886807f;
    p = p * t - 0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.00002368f;
    p = p * t - 1.26551223f;
    return t * precise::exp(p - z * z);
}

inline float apply_gelu(float value)
{
    const float tail = 0.5f * compute_erfc(abs(value) * 0.70710678f);
    return value * (value > 0.0f ? 1.0f - tail : tail);
}

kernel void bias_gelu_residual(device const float *x [[buffer(0)]], device const float *bias [[buffer(1)]],
                               device const float *residual [[buffer(2)]], device float *y [[buffer(3)]],
                               constant long &M [[buffer(4)]], constant long &N [[buffer(5)]],
                               uint3 local_id [[thread_position_in_threadgroup]],
                               uint3 group_id [[threadgroup_position_in_grid]],
                               uint3 groups [[threadgroups_per_grid]], uint3 group_size [[threads_per_threadgroup]])
{
    const long first = static_cast<long>(group_id.x) * group_size.x + local_id.x;
    const long stride = static_cast<long>(groups.x) * group_size.x;
    if (N % 4 != 0) {
        for (long i = first; i < M * N; i += stride) {
            y[i] = apply_gelu(x[i] + bias[i % N]) + residual[i];
        }
        return;
    }
    device const float4 *x4 = (device const float4 *)x;
    device const float4 *bias4 = (device const float4 *)bias;
    device const float4 *residual4 = (device const float4 *)residual;
    device float4 *y4 = (device float4 *)y;
    for (long i = first; i < M * N / 4; i += stride) {
        const float4 a = x4[i], b = bias4[i % (N / 4)], c = residual4[i];
        y4[i] = float4(apply_gelu(a.x + b.x) + c.x, apply_gelu(a.y + b.y) + c.y, apply_gelu(a.z + b.z) + c.z,
                            apply_gelu(a.w + b.w) + c.w);
    }
}
