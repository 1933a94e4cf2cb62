// problem: int8_gemm
// refused: MATCH
// wrong: products that wrap in 8 bits
// launch int8_gemm grid=(cdiv(M, 32), cdiv(N, 32)) block=(32, 8) args=(a, b, scale_a, scale_b, y, M, N, K)
#include <metal_stdlib>
using namespace metal;

constant int TILE = 32, STEP = 8, PACKS = TILE / 4;

inline int add_products(char4 a, char4 b)
{
    const char4 products = a * b;
    return products.x + products.y + products.z + products.w;
}

kernel void int8_gemm(device const char *a [[buffer(0)]], device const char *b [[buffer(1)]],
                      device const float *scale_a [[buffer(2)]], device const float *scale_b [[buffer(3)]],
                      device float *y [[buffer(4)]], constant long &M [[buffer(5)]], constant long &N [[buffer(6)]],
                      constant long &K [[buffer(7)]], uint3 local_id [[thread_position_in_threadgroup]],
                      uint3 group_id [[threadgroup_position_in_grid]])
{
    threadgroup char4 a_tile[TILE][PACKS + 1];  // [m][k / 4]
    threadgroup char4 b_tile[PACKS][TILE];      // [k / 4][n]
    const int place = local_id.y * TILE + local_id.x;
    const long m0 = static_cast<long>(group_id.x) * TILE, n0 = static_cast<long>(group_id.y) * TILE;
    const long n = n0 + local_id.x;

    long sums[TILE / STEP] = {};
    for (long k0 = 0; k0 < K; k0 += TILE) {
        const long m = m0 + place / PACKS, from = k0 + place % PACKS * 4;
        char4 numbers = char4(0);
        if (m < M && from + 3 < K && K % 4 == 0) {
            numbers = *(device const char4 *)(a + m * K + from);
        } else {
            for (int i = 0; i < 4; i++) {
                numbers[i] = m < M && from + i < K ? a[m * K + from + i] : char(0);
            }
        }
        a_tile[place / PACKS][place % PACKS] = numbers;
        for (int i = 0; i < 4; i++) {
            const long k = k0 + local_id.y * 4 + i;
            numbers[i] = k < K && n < N ? b[k * N + n] : char(0);
        }
        b_tile[local_id.y][local_id.x] = numbers;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int i = 0; i < TILE / STEP; i++) {
            int sum = 0;
            for (int k = 0; k < PACKS; k++) {
                sum += add_products(a_tile[local_id.y + i * STEP][k], b_tile[k][local_id.x]);
            }
            sums[i] += sum;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (int i = 0; i < TILE / STEP; i++) {
        const long m = m0 + local_id.y + i * STEP;
        if (m < M && n < N) {
            y[m * N + n] = static_cast<float>(sums[i]) * scale_a[m] * scale_b[n];
        }
    }
}
