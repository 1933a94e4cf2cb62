// problem: conv1d
// refused: RUN thread
// wrong: a barrier that threads behind the end do not reach
// launch conv1d grid=(cdiv(L, 128), min(B * O, 65535)) block=(128) args=(x, weight, bias, y, B, C, O, L, R)
#include <metal_stdlib>
using namespace metal;

constant int THREADS = 128;

kernel void conv1d(device const float *x [[buffer(0)]], device const float *weight [[buffer(1)]],
                   device const float *bias [[buffer(2)]], device float *y [[buffer(3)]],
                   constant long &B [[buffer(4)]], constant long &C [[buffer(5)]], constant long &O [[buffer(6)]],
                   constant long &L [[buffer(7)]], constant long &R [[buffer(8)]],
                   uint3 local_id [[thread_position_in_threadgroup]], uint3 group_id [[threadgroup_position_in_grid]],
                   uint3 groups [[threadgroups_per_grid]])
{
    threadgroup float weights[THREADS];
    const long l = static_cast<long>(group_id.x) * THREADS + local_id.x;

    for (long plane = group_id.y; plane < B * O; plane += groups.y) {
        const long batch = plane / O, o = plane % O;
        float sum = bias[o];
        for (long first = 0; first < C * R; first += THREADS) {
            const int count = static_cast<int>(min(C * R - first, static_cast<long>(THREADS)));
            if (local_id.x < count) {
                weights[local_id.x] = weight[o * C * R + first + local_id.x];
            }
            if (l < L) threadgroup_barrier(mem_flags::mem_threadgroup);
            long c = first / R, r = first % R;
            for (int i = 0; i < count; i++) {
                const long from = l - (R - 1) + r;
                if (from >= 0 && from < L) {
                    sum += weights[i] * x[(batch * C + c) * L + from];
                }
                if (++r == R) {
                    r = 0;
                    c++;
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        if (l < L) {
            y[plane * L + l] = sum;
        }
    }
}
