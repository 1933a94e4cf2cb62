// A thread a sample.
// launch mu_law_decode grid=(cdiv(C * T, 256)) block=(256) args=(codes, y, C, T)

extern "C" __global__ void mu_law_decode(const unsigned char *__restrict__ codes, short *__restrict__ y, long long C,
                                         long long T)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < C * T) {
        const int bits = 255 - codes[i], size = (((bits & 15) * 8 + 132) << (bits >> 4 & 7)) - 132;
        y[i] = static_cast<short>(bits >= 128 ? -size : size);
    }
}
