// problem: cross_entropy
// right: the target's lane is found by a vote in place of an index
// launch cross_entropy grid=(M) block=(32) args=(logits, target, loss, N)
__global__ void cross_entropy(const float *logits, const int64_t *target, float *loss, int64_t N)
{
    const float *row = logits + blockIdx.x * N;
    float largest = -INFINITY, sum = 0.0f, chosen = 0.0f;
    for (int64_t start = 0; start < N; start += 32) {
        const int64_t n = start + threadIdx.x;
        const float value = n < N ? row[n] : -INFINITY;
        const unsigned lanes = __ballot_sync(0xffffffffu, n == target[blockIdx.x]);
        if (lanes) {
            chosen = __shfl_sync(0xffffffffu, value, __ffs(lanes) - 1);
        }
        largest = fmaxf(largest, value);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
    }
    for (int64_t n = threadIdx.x; n < N; n += 32) {
        sum += expf(row[n] - largest);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    }
    if (threadIdx.x == 0) {
        loss[blockIdx.x] = largest + logf(sum) - chosen;
    }
}
