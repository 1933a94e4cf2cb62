// problem: cross_entropy
// wrong: lanes take places of a list by loading a counter and storing its successor: two lanes may get one place
// launch cross_entropy grid=(M) block=(64) args=(logits, target, loss, N)
__global__ void cross_entropy(const float *logits, const int64_t *target, float *loss, int64_t N)
{
    __shared__ float parts[64];
    __shared__ int next;
    const float *row = logits + blockIdx.x * N;
    if (threadIdx.x == 0) {
        next = 0;
    }
    parts[threadIdx.x] = 0.0f;
    __syncthreads();
    float largest = row[0], sum = 0.0f;
    for (int64_t n = 0; n < N; n++) {
        largest = fmaxf(largest, row[n]);
    }
    for (int64_t n = threadIdx.x; n < N; n += 64) {
        sum += expf(row[n] - largest);
    }
    const int place = atomicAdd(&next, 0);
    atomicMax(&next, place + 1);
    atomicExch(&parts[place], sum);
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int lane = 0; lane < 64; lane++) {
            total += parts[lane];
        }
        loss[blockIdx.x] = largest + logf(total) - row[target[blockIdx.x]];
    }
}
