// problem: softmax
// wrong: two to the power of forty instances of a template
// launch softmax grid=(M) block=(1) args=(x, y, N)
template <int depth, long long path> struct Tree {
    static constexpr long long value = Tree<depth - 1, path * 2>::value + Tree<depth - 1, path * 2 + 1>::value;
};
template <long long path> struct Tree<0, path> { static constexpr long long value = path; };
__global__ void softmax(const float *x, float *y, int64_t N)
{
    y[blockIdx.x * N] = static_cast<float>(Tree<40, 1>::value);
}
