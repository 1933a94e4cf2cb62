// problem: rope
// wrong: threads behind the last entry
// refused: RUN
// launch rope grid=(min(cdiv(T * H * D, 256), 4096)) block=(256) args=(x, cosine, sine, y, T, H, D)
#include <metal_stdlib>
using namespace metal;

kernel void rope(device const half *x [[buffer(0)]], device const float *cosine [[buffer(1)]],
                 device const float *sine [[buffer(2)]], device half *y [[buffer(3)]], constant long &T [[buffer(4)]],
                 constant long &H [[buffer(5)]], constant long &D [[buffer(6)]],
                 uint3 local_id [[thread_position_in_threadgroup]], uint3 group_id [[threadgroup_position_in_grid]],
                 uint3 groups [[threadgroups_per_grid]], uint3 group_size [[threads_per_threadgroup]])
{
    const long stride = static_cast<long>(groups.x) * group_size.x;
    for (long i = static_cast<long>(group_id.x) * group_size.x + local_id.x; i < T * H * D + 1; i += stride) {
        const long head = i / D, d = i % D, t = head / H;  // heads of all positions, in a row
        const long place = head * 2 * D + d;
        const float first = float(x[place]), second = float(x[place + D]);
        const float c = cosine[t * D + d], s = sine[t * D + d];
        y[place] = half(first * c - second * s);
        y[place + D] = half(second * c + first * s);
    }
}
