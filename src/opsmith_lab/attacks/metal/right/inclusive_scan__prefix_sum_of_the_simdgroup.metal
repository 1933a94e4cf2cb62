// problem: inclusive_scan
// right: Metal's own scan, in a function that all lanes call
// launch inclusive_scan grid=(M) block=(256) args=(x, y, N)
#include <metal_stdlib>
using namespace metal;

constant int GROUPS = 8;

inline float scan_simdgroup(float value, int lane)
{
    return simd_prefix_inclusive_sum(value);
}

kernel void inclusive_scan(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                           constant long &N [[buffer(2)]], uint3 local_id [[thread_position_in_threadgroup]],
                           uint3 group_id [[threadgroup_position_in_grid]],
                           uint3 group_size [[threads_per_threadgroup]])
{
    threadgroup float sums[GROUPS];
    const int lane = local_id.x % 32, group = local_id.x / 32;
    device const float *row = x + group_id.x * N;
    device float *out = y + group_id.x * N;

    float carry = 0.0f;  // the sum of all tiles before, the same in every thread
    for (long start = 0; start < N; start += group_size.x) {
        const long n = start + local_id.x;
        float value = scan_simdgroup(n < N ? row[n] : 0.0f, lane);
        if (lane == 31) {
            sums[group] = value;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (group == 0) {
            const float sum = scan_simdgroup(lane < GROUPS ? sums[lane] : 0.0f, lane);
            if (lane < GROUPS) {
                sums[lane] = sum;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        value += group > 0 ? carry + sums[group - 1] : carry;
        if (n < N) {
            out[n] = value;
        }
        carry += sums[GROUPS - 1];
        threadgroup_barrier(mem_flags::mem_threadgroup);  // all have read the sums before the next tile overwrites them
    }
}
