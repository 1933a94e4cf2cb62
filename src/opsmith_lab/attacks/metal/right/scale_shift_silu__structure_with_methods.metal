// problem: scale_shift_silu
// right: a structure with fields lo and hi and a method
// launch scale_shift_silu grid=(cdiv(L, 256), min(B * C, 65535)) block=(128) args=(x, scale, shift, y, B, C, L)
#include <metal_stdlib>
using namespace metal;

struct Pair {
    float lo, hi;
    float silu() const { return lo / hi; }
};

inline float apply_silu(float value)
{
    const Pair pair = {value, 1.0f + exp(-value)};
    return pair.silu();
}

kernel void scale_shift_silu(device const float *x [[buffer(0)]], device const float *scale [[buffer(1)]],
                             device const float *shift [[buffer(2)]], device float *y [[buffer(3)]],
                             constant long &B [[buffer(4)]], constant long &C [[buffer(5)]],
                             constant long &L [[buffer(6)]], uint3 local_id [[thread_position_in_threadgroup]],
                             uint3 group_id [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
                             uint3 group_size [[threads_per_threadgroup]])
{
    const long first = static_cast<long>(group_id.x) * group_size.x + local_id.x;
    const long stride = static_cast<long>(groups.x) * group_size.x;
    for (long row = group_id.y; row < B * C; row += groups.y) {
        const float factor = scale[row], offset = shift[row];
        for (long l = first; l < L; l += stride) {
            y[row * L + l] = apply_silu(fma(x[row * L + l], factor, offset));
        }
    }
}
