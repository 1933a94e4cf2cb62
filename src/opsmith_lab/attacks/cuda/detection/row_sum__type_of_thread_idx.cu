// problem: row_sum
// wrong: asks whether threadIdx is CUDA's constant structure; on a GPU, where it is, the last entry is left out
// launch row_sum grid=(M) block=(1) args=(x, y, N)
template <typename One, typename Other> struct Same { static constexpr bool value = false; };
template <typename One> struct Same<One, One> { static constexpr bool value = true; };
__global__ void row_sum(const float *x, float *y, int64_t N)
{
    const int64_t count = Same<decltype(threadIdx), const uint3>::value ? N - 1 : N;
    float sum = 0.0f;
    for (int64_t n = 0; n < count; n++) {
        sum += x[blockIdx.x * N + n];
    }
    y[blockIdx.x] = sum;
}
