// problem: conv1d
// right: the filter of an output channel is loaded in chunks of 32 entries, whatever C and R are
// launch conv1d grid=(O, B, cdiv(L, 32)) block=(32) args=(x, weight, bias, y, C, O, L, R)
__global__ void conv1d(const float *x, const float *weight, const float *bias, float *y, int64_t C, int64_t O,
                       int64_t L, int64_t R)
{
    __shared__ float chunk[32];
    const int64_t o = blockIdx.x, b = blockIdx.y, l = blockIdx.z * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int64_t start = 0; start < C * R; start += 32) {
        if (start + threadIdx.x < C * R) {
            chunk[threadIdx.x] = weight[o * C * R + start + threadIdx.x];
        }
        __syncthreads();
        for (int64_t i = start; i < start + 32 && i < C * R; i++) {
            const int64_t c = i / R, from = l + i % R - (R - 1);
            if (l < L && from >= 0) {
                sum += chunk[i - start] * x[(b * C + c) * L + from];
            }
        }
        __syncthreads();
    }
    if (l < L) {
        y[(b * O + o) * L + l] = sum + bias[o];
    }
}
