// A block per bag and 32 columns: eight warps share the bag's entries, their sums are added in shared memory.
// launch embedding_bag grid=(B, cdiv(D, 32)) block=(32, 8) args=(table, index, starts, y, T, B, D)
#include <cuda_bf16.h>

constexpr int COLUMNS = 32, PARTS = 8;

extern "C" __global__ void embedding_bag(const __nv_bfloat16 *__restrict__ table, const long long *__restrict__ index,
                                         const long long *__restrict__ starts, __nv_bfloat16 *__restrict__ y,
                                         long long T, long long B, long long D)
{
    __shared__ float parts[PARTS][COLUMNS];
    const long long bag = blockIdx.x, d = static_cast<long long>(blockIdx.y) * COLUMNS + threadIdx.x;
    const long long start = starts[bag], end = bag + 1 < B ? starts[bag + 1] : T;

    float sum = 0.0f;
    if (d < D) {
        for (long long t = start + threadIdx.y; t < end; t += PARTS) {
            sum += __bfloat162float(table[index[t] * D + d]);
        }
    }
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();

    if (threadIdx.y == 0 && d < D) {
        for (int part = 1; part < PARTS; part++) {
            sum += parts[part][threadIdx.x];
        }
        y[bag * D + d] = __float2bfloat16(end > start ? sum / static_cast<float>(end - start) : 0.0f);
    }
}
