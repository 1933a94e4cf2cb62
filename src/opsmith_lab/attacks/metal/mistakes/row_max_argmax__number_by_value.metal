// problem: row_max_argmax
// refused: PARSE constant long &N
// wrong: a size that is given by value
// launch row_max_argmax grid=(M) block=(128) args=(x, value, position, N)
#include <metal_stdlib>
using namespace metal;

constant int GROUPS = 4;

struct Peak {
    float value;
    long position;  // of equal values, the first one counts

    void merge(float other, long place)
    {
        if (other > value || (other == value && place < position)) {
            value = other;
            position = place;
        }
    }
};

inline Peak reduce_simdgroup(Peak peak)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = simd_shuffle_xor(peak.value, offset);
        const long place = simd_shuffle_xor(peak.position, offset);
        peak.merge(other, place);
    }
    return peak;
}

kernel void row_max_argmax(device const float *x [[buffer(0)]], device float *value [[buffer(1)]],
                           device long *position [[buffer(2)]], long N [[buffer(3)]],
                           uint3 local_id [[thread_position_in_threadgroup]],
                           uint3 group_id [[threadgroup_position_in_grid]],
                           uint3 group_size [[threads_per_threadgroup]])
{
    threadgroup float values[GROUPS];
    threadgroup long positions[GROUPS];
    const int lane = local_id.x % 32, group = local_id.x / 32;
    const long m = group_id.x;

    Peak peak = {-INFINITY, N};
    for (long n = local_id.x; n < N; n += group_size.x) {
        peak.merge(x[m * N + n], n);
    }
    peak = reduce_simdgroup(peak);
    if (lane == 0) {
        values[group] = peak.value;
        positions[group] = peak.position;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (local_id.x == 0) {
        for (int other = 1; other < GROUPS; other++) {
            peak.merge(values[other], positions[other]);
        }
        value[m] = peak.value;
        position[m] = peak.position;
    }
}
