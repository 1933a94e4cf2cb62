// Tiles of 16 rows never cross a group: a group of r rows has cdiv(r, 16) of them, so all have cdiv(T, 16) + G at most.
// launch grouped_gemm grid=(cdiv(T, 16) + G, cdiv(N, 32)) block=(32, 8) args=(x, weight, ends, y, G, N, K)
#include <cuda_bf16.h>

constexpr int ROWS = 16, COLUMNS = 32, DEPTH = 32, STEP = 8;

extern "C" __global__ void grouped_gemm(const __nv_bfloat16 *__restrict__ x, const __nv_bfloat16 *__restrict__ weight,
                                        const long long *__restrict__ ends, __nv_bfloat16 *__restrict__ y,
                                        long long G, long long N, long long K)
{
    __shared__ __nv_bfloat16 x_tile[ROWS][DEPTH], weight_tile[DEPTH][COLUMNS];

    long long group = 0, start = 0, tile = blockIdx.x;
    for (; group < G; group++) {  // which group this block's tile is of; tile: its number within the group
        const long long tiles = (ends[group] - start + ROWS - 1) / ROWS;
        if (tile < tiles) {
            break;
        }
        tile -= tiles;
        start = ends[group];
    }
    if (group == G) {
        return;  // the whole block: there are fewer tiles than blocks
    }
    const long long first = start + tile * ROWS, end = ends[group];
    const long long n = static_cast<long long>(blockIdx.y) * COLUMNS + threadIdx.x;
    const __nv_bfloat16 *matrix = weight + group * K * N;
    const __nv_bfloat16 zero = __float2bfloat16(0.0f);

    float sums[ROWS / STEP] = {};
    for (long long k0 = 0; k0 < K; k0 += DEPTH) {
        for (int row = threadIdx.y; row < ROWS; row += STEP) {
            const long long t = first + row, k = k0 + threadIdx.x;
            x_tile[row][threadIdx.x] = t < end && k < K ? x[t * K + k] : zero;
        }
        for (int depth = threadIdx.y; depth < DEPTH; depth += STEP) {
            const long long k = k0 + depth;
            weight_tile[depth][threadIdx.x] = k < K && n < N ? matrix[k * N + n] : zero;
        }
        __syncthreads();
        for (int depth = 0; depth < DEPTH; depth++) {
            const float factor = __bfloat162float(weight_tile[depth][threadIdx.x]);
            for (int i = 0; i < ROWS / STEP; i++) {
                sums[i] += __bfloat162float(x_tile[threadIdx.y + i * STEP][depth]) * factor;
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < ROWS / STEP; i++) {
        const long long t = first + threadIdx.y + i * STEP;
        if (t < end && n < N) {
            y[t * N + n] = __float2bfloat16(sums[i]);
        }
    }
}
