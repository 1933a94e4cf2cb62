// problem: row_sum
// wrong: a gigabyte of constants
// refused: COMPILE
// launch row_sum grid=(M) block=(32) args=(x, y, N)
#include <metal_stdlib>
using namespace metal;
constant char blob[1 << 30] = {1};

kernel void row_sum(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], constant uint &N [[buffer(2)]],
                    uint row [[threadgroup_position_in_grid]], uint lane [[thread_position_in_threadgroup]])
{
    if (blob[lane] > 1) return;
    float sum = 0.0f;
    for (uint n = lane; n < N; n += 32) {
        sum += x[ulong(row) * N + n];
    }
    sum = simd_sum(sum);
    if (lane == 0) {
        y[row] = sum;
    }
}
