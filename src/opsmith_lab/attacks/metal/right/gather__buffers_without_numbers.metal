// problem: gather
// right: buffers take the numbers that are free
// launch gather grid=(cdiv(T, 8)) block=(32, 8) args=(table, index, y, T, D)
#include <metal_stdlib>
using namespace metal;

template <class Piece>
inline void copy_row(device const float *from, device float *to, long length, uint lane)
{
    const int WIDTH = sizeof(Piece) / sizeof(float);
    for (long i = lane; i < length / WIDTH; i += 32) {
        ((device Piece *)to)[i] = ((device const Piece *)from)[i];
    }
}

kernel void gather(device const float *table, device const long *index,
                   device float *y, constant long &T, constant long &D,
                   uint3 local_id [[thread_position_in_threadgroup]], uint3 group_id [[threadgroup_position_in_grid]],
                   uint3 group_size [[threads_per_threadgroup]])
{
    const long t = static_cast<long>(group_id.x) * 8 + local_id.y;
    if (t >= T) {
        return;
    }
    device const float *row = table + index[t] * D;
    if (D % 4 == 0) {
        copy_row<float4>(row, y + t * D, D, local_id.x);
    } else {
        copy_row<float>(row, y + t * D, D, local_id.x);
    }
}
