// problem: scatter_add
// right: adds by compare and exchange, as often as it takes
// launch copy_table grid=(min(cdiv(V * D, 256), 2048)) block=(256) args=(table, y, V, D)
// launch add_rows grid=(min(cdiv(T * D, 256), 2048)) block=(256) args=(index, rows, y, T, D)
#include <metal_stdlib>
using namespace metal;

kernel void copy_table(device const float *table [[buffer(0)]], device float *y [[buffer(1)]],
                       constant long &V [[buffer(2)]], constant long &D [[buffer(3)]],
                       uint3 local_id [[thread_position_in_threadgroup]],
                       uint3 group_id [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
                       uint3 group_size [[threads_per_threadgroup]])
{
    const long stride = static_cast<long>(groups.x) * group_size.x;
    for (long i = static_cast<long>(group_id.x) * group_size.x + local_id.x; i < V * D; i += stride) {
        y[i] = table[i];
    }
}

kernel void add_rows(device const long *index [[buffer(0)]], device const float *rows [[buffer(1)]],
                     device atomic_float *y [[buffer(2)]], constant long &T [[buffer(3)]], constant long &D [[buffer(4)]],
                     uint3 local_id [[thread_position_in_threadgroup]],
                     uint3 group_id [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
                     uint3 group_size [[threads_per_threadgroup]])
{
    const long stride = static_cast<long>(groups.x) * group_size.x;
    for (long i = static_cast<long>(group_id.x) * group_size.x + local_id.x; i < T * D; i += stride) {
        device atomic_float *entry = &y[index[i / D] * D + i % D];
        float old = atomic_load_explicit(entry, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(entry, &old, old + rows[i], memory_order_relaxed, memory_order_relaxed)) {
        }
    }
}
