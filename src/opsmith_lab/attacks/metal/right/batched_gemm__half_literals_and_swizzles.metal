// problem: batched_gemm
// right: literals of half, swizzles on both sides
// launch batched_gemm grid=(cdiv(M, 32), cdiv(N, 32), min(B, 65535)) block=(32, 8) args=(a, b, y, B, M, N, K)
#include <metal_stdlib>
using namespace metal;

constant int TILE = 32, STEP = 8, PART = TILE / STEP;

// The tile of a matrix of that many rows and columns, with zeros outside of it.
inline void load_tile(threadgroup half (&tile)[TILE][TILE], device const half *matrix, long row0, long column0,
                      long rows, long columns, uint3 local_id)
{
    const long column = column0 + local_id.x;
    for (int i = local_id.y; i < TILE; i += STEP) {
        const bool is_inside = row0 + i < rows && column < columns;
        tile[i][local_id.x] = is_inside ? matrix[(row0 + i) * columns + column] : 0.0h;
    }
}

kernel void batched_gemm(device const half *a [[buffer(0)]], device const half *b [[buffer(1)]],
                         device half *y [[buffer(2)]], constant long &B [[buffer(3)]], constant long &M [[buffer(4)]],
                         constant long &N [[buffer(5)]], constant long &K [[buffer(6)]],
                         uint3 local_id [[thread_position_in_threadgroup]],
                         uint3 group_id [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]])
{
    threadgroup half a_tile[TILE][TILE], b_tile[TILE][TILE];
    const long m0 = static_cast<long>(group_id.x) * TILE, n0 = static_cast<long>(group_id.y) * TILE;

    for (long batch = group_id.z; batch < B; batch += groups.z) {
        float4 sums = float4(0.0h);
        for (long k0 = 0; k0 < K; k0 += TILE) {
            load_tile(a_tile, a + batch * M * K, m0, k0, M, K, local_id);
            load_tile(b_tile, b + batch * K * N, k0, n0, K, N, local_id);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (int k = 0; k < TILE; k++) {
                const float factor = float(b_tile[k][local_id.x]);
                for (int i = 0; i < PART; i++) {
                    sums[i] += float(a_tile[local_id.y + i * STEP][k]) * factor;
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        sums.xyzw = sums.wzyx.wzyx;
        const long n = n0 + local_id.x;
        for (int i = 0; i < PART; i++) {
            const long m = m0 + local_id.y + i * STEP;
            if (m < M && n < N) {
                y[(batch * M + m) * N + n] = half(sums[i]);
            }
        }
    }
}
