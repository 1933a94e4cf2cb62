// problem: row_max_argmax
// wrong: the round in which a thread met its largest entry is kept in three bits: positions wrap at 512
// launch row_max_argmax grid=(M) block=(64) args=(x, value, position, N)
struct Peak {
    float value;
    unsigned lane : 6, round : 3;
};
__global__ void row_max_argmax(const float *x, float *value, int64_t *position, int64_t N)
{
    __shared__ Peak peaks[64];
    Peak best = {-INFINITY, threadIdx.x, 0};
    for (int64_t n = threadIdx.x; n < N; n += 64) {
        if (x[blockIdx.x * N + n] > best.value) {
            best.value = x[blockIdx.x * N + n];
            best.round = static_cast<unsigned>(n / 64);
        }
    }
    peaks[threadIdx.x] = best;
    __syncthreads();
    if (threadIdx.x == 0) {
        float largest = best.value;
        int64_t place = best.round * 64;
        for (int lane = 1; lane < 64; lane++) {
            const int64_t other = peaks[lane].round * 64 + lane;
            if (peaks[lane].value > largest || (peaks[lane].value == largest && other < place)) {
                largest = peaks[lane].value;
                place = other;
            }
        }
        value[blockIdx.x] = largest;
        position[blockIdx.x] = place;
    }
}
