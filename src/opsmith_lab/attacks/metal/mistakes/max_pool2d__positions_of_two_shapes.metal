// problem: max_pool2d
// refused: PARSE components
// wrong: positions of three components and of two
// launch max_pool2d grid=(cdiv(W, 32), cdiv(H, 8), min(B * C, 65535)) block=(32, 8) args=(x, y, B, C, H, W)
#include <metal_stdlib>
using namespace metal;

kernel void max_pool2d(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                       constant long &B [[buffer(2)]], constant long &C [[buffer(3)]], constant long &H [[buffer(4)]],
                       constant long &W [[buffer(5)]], uint3 local_id [[thread_position_in_threadgroup]],
                       uint3 group_id [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]], uint2 gid [[thread_position_in_grid]],
                       uint3 group_size [[threads_per_threadgroup]])
{
    const long w = static_cast<long>(group_id.x) * group_size.x + local_id.x;
    const long h = static_cast<long>(group_id.y) * group_size.y + local_id.y;
    if (h >= H || w >= W) {
        return;
    }
    for (long plane = group_id.z; plane < B * C; plane += groups.z) {
        device const float *image = x + plane * 4 * H * W;
        float largest = -INFINITY;
        for (long row = max(2 * h - 1, 0l); row <= 2 * h + 1; row++) {
            for (long column = max(2 * w - 1, 0l); column <= 2 * w + 1; column++) {
                largest = max(largest, image[row * 2 * W + column]);
            }
        }
        y[(plane * H + h) * W + w] = largest;
    }
}
