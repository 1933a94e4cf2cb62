// problem: softmax
// right: four rows a block, a warp each, with a running maximum; rows behind the end are masked and not left
// launch softmax grid=(cdiv(M, 4)) block=(32, 4) args=(x, y, M, N)
__global__ void softmax(const float *__restrict__ x, float *__restrict__ y, int64_t M, int64_t N)
{
    const int64_t m = blockIdx.x * 4 + threadIdx.y;
    const bool valid = m < M;
    float largest = -INFINITY, total = 0.0f;
    for (int64_t n = threadIdx.x; valid && n < N; n += 32) {
        const float value = x[m * N + n];
        const float next = fmaxf(largest, value);
        total = total * expf(largest - next) + expf(value - next);
        largest = next;
    }
    for (int offset = 1; offset < 32; offset <<= 1) {
        const float other = __shfl_xor_sync(0xffffffffu, largest, offset);
        const float sum = __shfl_xor_sync(0xffffffffu, total, offset);
        const float next = fmaxf(largest, other);
        if (next > -INFINITY) {
            total = total * expf(largest - next) + sum * expf(other - next);
        }
        largest = next;
    }
    for (int64_t n = threadIdx.x; valid && n < N; n += 32) {
        y[m * N + n] = expf(x[m * N + n] - largest) / total;
    }
}
