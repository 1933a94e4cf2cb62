// Tiles of 16 rows never cross a group: a group of r rows has cdiv(r, 16) of them, so all have cdiv(T, 16) + G at most.
// launch grouped_gemm grid=(cdiv(T, 16) + G, cdiv(N, 32)) block=(32, 8) args=(x, weight, ends, y, G, N, K)
#include <metal_stdlib>
using namespace metal;

constant int ROWS = 16, COLUMNS = 32, DEPTH = 32, STEP = 8;

kernel void grouped_gemm(device const bfloat *x [[buffer(0)]], device const bfloat *weight [[buffer(1)]],
                         device const long *ends [[buffer(2)]], device bfloat *y [[buffer(3)]],
                         constant long &G [[buffer(4)]], constant long &N [[buffer(5)]],
                         constant long &K [[buffer(6)]], uint3 local_id [[thread_position_in_threadgroup]],
                         uint3 group_id [[threadgroup_position_in_grid]])
{
    threadgroup bfloat x_tile[ROWS][DEPTH], weight_tile[DEPTH][COLUMNS];

    long group = 0, start = 0, tile = group_id.x;
    for (; group < G; group++) {  // which group this block's tile is of; tile: its number within the group
        const long tiles = (ends[group] - start + ROWS - 1) / ROWS;
        if (tile < tiles) {
            break;
        }
        tile -= tiles;
        start = ends[group];
    }
    if (group == G) {
        return;  // the whole threadgroup: there are fewer tiles than blocks
    }
    const long first = start + tile * ROWS, end = ends[group];
    const long n = static_cast<long>(group_id.y) * COLUMNS + local_id.x;
    device const bfloat *matrix = weight + group * K * N;
    const bfloat zero = bfloat(0.0f);

    float sums[ROWS / STEP] = {};
    for (long k0 = 0; k0 < K; k0 += DEPTH) {
        for (int row = local_id.y; row < ROWS; row += STEP) {
            const long t = first + row, k = k0 + local_id.x;
            x_tile[row][local_id.x] = t < end && k < K ? x[t * K + k] : zero;
        }
        for (int depth = local_id.y; depth < DEPTH; depth += STEP) {
            const long k = k0 + depth;
            weight_tile[depth][local_id.x] = k < K && n < N ? matrix[k * N + n] : zero;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int depth = 0; depth < DEPTH; depth++) {
            const float factor = float(weight_tile[depth][local_id.x]);
            for (int i = 0; i < ROWS / STEP; i++) {
                sums[i] += float(x_tile[local_id.y + i * STEP][depth]) * factor;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (int i = 0; i < ROWS / STEP; i++) {
        const long t = first + local_id.y + i * STEP;
        if (t < end && n < N) {
            y[t * N + n] = bfloat(sums[i]);
        }
    }
}
