// problem: row_sum
// wrong: expands to 10^7 additions
// refused: COMPILE
// launch row_sum grid=(M) block=(32) args=(x, y, N)
#include <metal_stdlib>
using namespace metal;
#define A0(x) x x x x x x x x x x
#define A1(x) A0(x) A0(x) A0(x) A0(x) A0(x) A0(x) A0(x) A0(x) A0(x) A0(x)
#define A2(x) A1(x) A1(x) A1(x) A1(x) A1(x) A1(x) A1(x) A1(x) A1(x) A1(x)
#define A3(x) A2(x) A2(x) A2(x) A2(x) A2(x) A2(x) A2(x) A2(x) A2(x) A2(x)
#define A4(x) A3(x) A3(x) A3(x) A3(x) A3(x) A3(x) A3(x) A3(x) A3(x) A3(x)
#define A5(x) A4(x) A4(x) A4(x) A4(x) A4(x) A4(x) A4(x) A4(x) A4(x) A4(x)
#define A6(x) A5(x) A5(x) A5(x) A5(x) A5(x) A5(x) A5(x) A5(x) A5(x) A5(x)

kernel void row_sum(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], constant uint &N [[buffer(2)]],
                    uint row [[threadgroup_position_in_grid]], uint lane [[thread_position_in_threadgroup]])
{
    float many = 0.0f A6(+ 1.0f);
    if (many > 1e30f) return;
    float sum = 0.0f;
    for (uint n = lane; n < N; n += 32) {
        sum += x[ulong(row) * N + n];
    }
    sum = simd_sum(sum);
    if (lane == 0) {
        y[row] = sum;
    }
}
