// problem: softmax
// right: a barrier over more memory than it needs
// launch softmax grid=(M) block=(256) args=(x, y, N)
#include <metal_stdlib>
using namespace metal;

constant int GROUPS = 8;

struct Sum {
    float largest;  // -infinity: nothing was added so far
    float total;    // of exp(entry - largest)

    void add(float other_largest, float other_total)
    {
        const float next = max(largest, other_largest);
        if (next > -INFINITY) {
            total = total * exp(largest - next) + other_total * exp(other_largest - next);
            largest = next;
        }
    }
};

inline Sum reduce_simdgroup(Sum sum)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const float largest = simd_shuffle_xor(sum.largest, offset);
        const float total = simd_shuffle_xor(sum.total, offset);
        sum.add(largest, total);
    }
    return sum;
}

kernel void softmax(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                    constant long &N [[buffer(2)]], uint3 local_id [[thread_position_in_threadgroup]],
                    uint3 group_id [[threadgroup_position_in_grid]], uint3 group_size [[threads_per_threadgroup]])
{
    threadgroup float largests[GROUPS], totals[GROUPS];
    const int lane = local_id.x % 32, group = local_id.x / 32;
    device const float *row = x + group_id.x * N;
    device float *out = y + group_id.x * N;

    Sum sum = {-INFINITY, 0.0f};
    for (long n = local_id.x; n < N; n += group_size.x) {
        sum.add(row[n], 1.0f);
    }
    sum = reduce_simdgroup(sum);
    if (lane == 0) {
        largests[group] = sum.largest;
        totals[group] = sum.total;
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);

    sum = lane < GROUPS ? Sum{largests[lane], totals[lane]} : Sum{-INFINITY, 0.0f};
    sum = reduce_simdgroup(sum);  // in every simdgroup, so that every thread has the row's
    const float scale = 1.0f / sum.total;
    for (long n = local_id.x; n < N; n += group_size.x) {
        out[n] = exp(row[n] - sum.largest) * scale;
    }
}
