// problem: row_sum
// wrong: parts are added in an order that is open
// refused: RUN
// launch row_sum grid=(M) block=(256) args=(x, y, N)
#include <metal_stdlib>
using namespace metal;

constant int GROUPS = 8;

inline float sum_simdgroup(float value)
{
    for (int offset = 16; offset > 0; offset /= 2) {
        value += simd_shuffle_down(value, offset);
    }
    return value;  // in lane 0
}

kernel void row_sum(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                    constant long &N [[buffer(2)]], uint3 local_id [[thread_position_in_threadgroup]],
                    uint3 group_id [[threadgroup_position_in_grid]], uint3 group_size [[threads_per_threadgroup]])
{
    threadgroup float sums[GROUPS];
    const int lane = local_id.x % 32, group = local_id.x / 32;
    device const float *row = x + group_id.x * N;

    float sum = 0.0f;
    for (long n = local_id.x; n < N; n += group_size.x) {
        sum += row[n];
    }
    sum = sum_simdgroup(sum);
    if (lane == 0) {
        sums[group] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (group == 0) {
        sum = sum_simdgroup(lane < GROUPS ? sums[lane] : 0.0f);
        sums[lane % GROUPS] = sum;
        if (lane == 0) {
            y[group_id.x] = sum;
        }
    }
}
