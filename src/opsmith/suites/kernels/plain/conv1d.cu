// A block computes 128 entries of one output channel; its weights pass through shared memory, 128 at a time.
// launch conv1d grid=(cdiv(L, 128), min(B * O, 65535)) block=(128) args=(x, weight, bias, y, B, C, O, L, R)

constexpr int THREADS = 128;

extern "C" __global__ void conv1d(const float *__restrict__ x, const float *__restrict__ weight,
                                  const float *__restrict__ bias, float *__restrict__ y, long long B, long long C,
                                  long long O, long long L, long long R)
{
    __shared__ float weights[THREADS];
    const long long l = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;

    for (long long plane = blockIdx.y; plane < B * O; plane += gridDim.y) {
        const long long batch = plane / O, o = plane % O;
        float sum = bias[o];
        for (long long first = 0; first < C * R; first += THREADS) {
            const int count = static_cast<int>(min(C * R - first, static_cast<long long>(THREADS)));
            if (threadIdx.x < count) {
                weights[threadIdx.x] = weight[o * C * R + first + threadIdx.x];
            }
            __syncthreads();
            long long c = first / R, r = first % R;
            for (int i = 0; i < count; i++) {
                const long long from = l - (R - 1) + r;
                if (from >= 0 && from < L) {
                    sum += weights[i] * __ldg(&x[(batch * C + c) * L + from]);
                }
                if (++r == R) {
                    r = 0;
                    c++;
                }
            }
            __syncthreads();
        }
        if (l < L) {
            y[plane * L + l] = sum;
        }
    }
}
