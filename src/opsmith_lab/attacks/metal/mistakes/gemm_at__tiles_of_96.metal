// problem: gemm_at
// refused: COMPILE bytes of threadgroup memory
// wrong: more threadgroup memory than a threadgroup has
// launch gemm_at grid=(cdiv(M, 96), cdiv(N, 96)) block=(96, 8) args=(a, b, y, M, N, K)
#include <metal_stdlib>
using namespace metal;

constant int TILE = 96;
constant int STEP = 8;  // threads along y

kernel void gemm_at(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                    device float *y [[buffer(2)]], constant long &M [[buffer(3)]], constant long &N [[buffer(4)]],
                    constant long &K [[buffer(5)]], uint3 local_id [[thread_position_in_threadgroup]],
                    uint3 group_id [[threadgroup_position_in_grid]])
{
    threadgroup float a_tile[TILE][TILE];  // [k][m]
    threadgroup float b_tile[TILE][TILE];  // [k][n]
    const long m0 = static_cast<long>(group_id.x) * TILE, n0 = static_cast<long>(group_id.y) * TILE;
    const int column = local_id.x;

    float sums[TILE / STEP] = {};
    for (long k0 = 0; k0 < K; k0 += TILE) {
        for (int row = local_id.y; row < TILE; row += STEP) {
            const long k = k0 + row;
            a_tile[row][column] = k < K && m0 + column < M ? a[k * M + m0 + column] : 0.0f;
            b_tile[row][column] = k < K && n0 + column < N ? b[k * N + n0 + column] : 0.0f;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int k = 0; k < TILE; k++) {
            const float factor = b_tile[k][column];
#pragma unroll
            for (int i = 0; i < TILE / STEP; i++) {
                sums[i] = fma(a_tile[k][local_id.y + i * STEP], factor, sums[i]);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

#pragma unroll
    for (int i = 0; i < TILE / STEP; i++) {
        const long m = m0 + local_id.y + i * STEP, n = n0 + column;
        if (m < M && n < N) {
            y[m * N + n] = sums[i];
        }
    }
}
