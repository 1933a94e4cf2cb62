// problem: gemm_bias_relu
// refused: MATCH
// wrong: sums in half
// launch gemm_bias_relu grid=(cdiv(M, 64), cdiv(N, 64)) block=(16, 16) args=(a, b, bias, y, M, N, K)
#include <metal_stdlib>
using namespace metal;

constant int TILE = 64;   // rows and columns of a threadgroup
constant int DEPTH = 16;  // of K at a time
constant int SIDE = 16;   // threads along x and y
constant int PART = TILE / SIDE;

kernel void gemm_bias_relu(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                           device const float *bias [[buffer(2)]], device float *y [[buffer(3)]],
                           constant long &M [[buffer(4)]], constant long &N [[buffer(5)]],
                           constant long &K [[buffer(6)]], uint3 local_id [[thread_position_in_threadgroup]],
                           uint3 group_id [[threadgroup_position_in_grid]])
{
    threadgroup float a_tile[DEPTH][TILE + 1];  // transposed; one more, so that a column's writes hit different banks
    threadgroup float b_tile[DEPTH][TILE];
    const long m0 = static_cast<long>(group_id.x) * TILE, n0 = static_cast<long>(group_id.y) * TILE;
    const int place = local_id.y * SIDE + local_id.x;

    half sums[PART][PART] = {};
    for (long k0 = 0; k0 < K; k0 += DEPTH) {
        for (int i = place; i < TILE * DEPTH; i += SIDE * SIDE) {
            const int row = i / DEPTH, depth = i % DEPTH;
            const bool is_inside = m0 + row < M && k0 + depth < K;
            a_tile[depth][row] = is_inside ? a[(m0 + row) * K + k0 + depth] : 0.0f;
        }
        for (int i = place; i < TILE * DEPTH; i += SIDE * SIDE) {
            const int depth = i / TILE, column = i % TILE;
            const bool is_inside = k0 + depth < K && n0 + column < N;
            b_tile[depth][column] = is_inside ? b[(k0 + depth) * N + n0 + column] : 0.0f;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (int depth = 0; depth < DEPTH; depth++) {
            float left[PART], right[PART];
            for (int i = 0; i < PART; i++) {
                left[i] = a_tile[depth][local_id.y + i * SIDE];
                right[i] = b_tile[depth][local_id.x + i * SIDE];
            }
            for (int i = 0; i < PART; i++) {
                for (int j = 0; j < PART; j++) {
                    sums[i][j] += left[i] * right[j];
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    for (int i = 0; i < PART; i++) {
        const long m = m0 + local_id.y + i * SIDE;
        for (int j = 0; j < PART; j++) {
            const long n = n0 + local_id.x + j * SIDE;
            if (m < M && n < N) {
                y[m * N + n] = max(sums[i][j] + bias[n], 0.0f);
            }
        }
    }
}
