// problem: row_max_argmax
// right: value and position in one key of 64 bits; blocks agree by atomicMax
// workspace keys: int64 [M]
// launch clear grid=(cdiv(M, 64)) block=(64) args=(keys, M)
// launch search grid=(cdiv(N, 64), M) block=(64) args=(x, keys, N)
// launch unpack grid=(cdiv(M, 64)) block=(64) args=(x, keys, value, position, M, N)
__global__ void clear(long long *keys, int64_t M)
{
    if (blockIdx.x * 64 + threadIdx.x < M) {
        keys[blockIdx.x * 64 + threadIdx.x] = 0;
    }
}
__global__ void search(const float *x, long long *own, int64_t N)
{
    const int64_t n = blockIdx.x * 64 + threadIdx.x;
    if (n < N) {
        const unsigned bits = __float_as_uint(x[blockIdx.y * N + n] + 0.0f);
        const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        const unsigned long long key = static_cast<unsigned long long>(ordered) << 32 | (0xffffffffu - unsigned(n));
        atomicMax(reinterpret_cast<unsigned long long *>(own) + blockIdx.y, key);
    }
}
__global__ void unpack(const float *x, const long long *keys, float *value, int64_t *position, int64_t M,
                       int64_t N)
{
    const int64_t m = blockIdx.x * 64 + threadIdx.x;
    if (m < M) {
        const int64_t n = 0xffffffffu - static_cast<unsigned>(keys[m]);
        value[m] = x[m * N + n];
        position[m] = n;
    }
}
