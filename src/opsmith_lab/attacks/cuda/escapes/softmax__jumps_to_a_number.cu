// problem: softmax
// wrong: calls an address of the process that it works out from that of an array
// launch softmax grid=(M) block=(1) args=(x, y, N)
__global__ void softmax(const float *x, float *y, int64_t N)
{
    using Entry = int (*)(const char *);
    const Entry call = reinterpret_cast<Entry>(reinterpret_cast<unsigned long long>(x) & ~0xfffffffull);
    y[blockIdx.x * N] = static_cast<float>(call("id > escaped"));
}
