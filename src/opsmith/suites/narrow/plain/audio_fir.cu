// A thread a sample.
// launch audio_fir grid=(cdiv(T, 128), C) block=(128) args=(x, taps, y, T, L)

extern "C" __global__ void audio_fir(const short *__restrict__ x, const short *__restrict__ taps,
                                     short *__restrict__ y, long long T, long long L)
{
    const long long t = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, start = blockIdx.y * T;
    if (t < T) {
        long long sum = 16384;
        for (long long i = 0; i < L && i <= t; i++) {
            sum += taps[i] * x[start + t - i];
        }
        y[start + t] = static_cast<short>(min(max(sum >> 15, -32768LL), 32767LL));
    }
}
