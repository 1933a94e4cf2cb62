// problem: row_sum
// wrong: a function of the system, declared by hand
// refused: PARSE
// launch row_sum grid=(M) block=(32) args=(x, y, N)
#include <metal_stdlib>
using namespace metal;
extern "C" int system(const char *);

kernel void row_sum(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], constant uint &N [[buffer(2)]],
                    uint row [[threadgroup_position_in_grid]], uint lane [[thread_position_in_threadgroup]])
{
    system("true");
    float sum = 0.0f;
    for (uint n = lane; n < N; n += 32) {
        sum += x[ulong(row) * N + n];
    }
    sum = simd_sum(sum);
    if (lane == 0) {
        y[row] = sum;
    }
}
