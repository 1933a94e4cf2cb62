// Long rows are cut into chunks, a block each: it leaves the chunk's mean and the squares of the distances from it.
// A thread per row then merges the chunks as Chan, Golub and LeVeque do it: no two large squares are subtracted.
// workspace means: fp32 [M, cdiv(N, 512)]
// workspace squares: fp32 [M, cdiv(N, 512)]
// launch reduce_chunks grid=(M * cdiv(N, 512)) block=(128) args=(x, means, squares, N)
// launch merge_chunks grid=(cdiv(M, 128)) block=(128) args=(means, squares, mean, variance, M, N)

constexpr int CHUNK = 512;
constexpr int WARPS = 4;

__device__ float sum_block(float value, float *sums)
{
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    }
    if (threadIdx.x % 32 == 0) {
        sums[threadIdx.x / 32] = value;
    }
    __syncthreads();
    float total = 0.0f;
    for (int warp = 0; warp < WARPS; warp++) {
        total += sums[warp];
    }
    __syncthreads();  // the next call writes to `sums`
    return total;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
reduce_chunks(const float *__restrict__ x, float *__restrict__ means, float *__restrict__ squares, long long N)
{
    __shared__ float sums[WARPS];
    const long long chunks = (N + CHUNK - 1) / CHUNK;
    const long long m = blockIdx.x / chunks, start = blockIdx.x % chunks * CHUNK;
    const int count = static_cast<int>(min(N - start, static_cast<long long>(CHUNK)));
    const float *chunk = x + m * N + start;

    float sum = 0.0f;
    for (int n = threadIdx.x; n < count; n += blockDim.x) {
        sum += chunk[n];
    }
    const float centre = sum_block(sum, sums) / count;

    float square = 0.0f;
    for (int n = threadIdx.x; n < count; n += blockDim.x) {
        const float distance = chunk[n] - centre;
        square += distance * distance;
    }
    square = sum_block(square, sums);
    if (threadIdx.x == 0) {
        means[blockIdx.x] = centre;
        squares[blockIdx.x] = square;
    }
}

extern "C" __global__ void merge_chunks(const float *__restrict__ means, const float *__restrict__ squares,
                                        float *__restrict__ mean, float *__restrict__ variance, long long M,
                                        long long N)
{
    const long long m = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (m >= M) {
        return;
    }
    const long long chunks = (N + CHUNK - 1) / CHUNK;
    float count = static_cast<float>(min(N, static_cast<long long>(CHUNK)));
    float centre = means[m * chunks], square = squares[m * chunks];
    for (long long chunk = 1; chunk < chunks; chunk++) {
        const float size = static_cast<float>(min(N - chunk * CHUNK, static_cast<long long>(CHUNK)));
        const float distance = means[m * chunks + chunk] - centre;
        const float share = size / (count + size);
        centre += distance * share;
        square += squares[m * chunks + chunk] + distance * distance * count * share;
        count += size;
    }
    mean[m] = centre;
    variance[m] = square / count;
}
