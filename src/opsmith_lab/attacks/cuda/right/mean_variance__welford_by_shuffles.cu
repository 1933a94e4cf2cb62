// problem: mean_variance
// right: counts, means and squares of lanes are merged by shuffles; lanes may hold nothing
// launch mean_variance grid=(M) block=(32) args=(x, mean, variance, N)
__global__ void mean_variance(const float *x, float *mean, float *variance, int64_t N)
{
    float count = 0.0f, centre = 0.0f, squares = 0.0f;
    for (int64_t n = threadIdx.x; n < N; n += warpSize) {
        const float value = x[blockIdx.x * N + n];
        count += 1.0f;
        const float step = value - centre;
        centre += step / count;
        squares += step * (value - centre);
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        const float other_count = __shfl_down_sync(0xffffffffu, count, offset);
        const float other_centre = __shfl_down_sync(0xffffffffu, centre, offset);
        const float other_squares = __shfl_down_sync(0xffffffffu, squares, offset);
        const float sum = count + other_count;
        if (sum > 0.0f) {
            const float step = other_centre - centre;
            centre += step * other_count / sum;
            squares += other_squares + step * step * count * other_count / sum;
            count = sum;
        }
    }
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = centre;
        variance[blockIdx.x] = squares / N;
    }
}
