// A block computes 8 x 16 pixels of four output channels: the part of the image below them lies in shared memory.
// launch conv2d grid=(cdiv(H, 8) * cdiv(W, 16), cdiv(O, 4), min(B, 65535)) block=(16, 8) args=(x, weight, bias, y, B, C, O, H, W)

constexpr int HEIGHT = 8, WIDTH = 16, CHANNELS = 4;
constexpr int TALL = 2 * HEIGHT + 1, WIDE = 2 * WIDTH + 1;  // what 3 x 3 windows with stride 2 touch

extern "C" __global__ void conv2d(const float *__restrict__ x, const float *__restrict__ weight,
                                  const float *__restrict__ bias, float *__restrict__ y, long long B, long long C,
                                  long long O, long long H, long long W)
{
    __shared__ float image[TALL][WIDE];
    __shared__ float window[CHANNELS][9];
    const int thread = threadIdx.y * WIDTH + threadIdx.x;
    const long long tiles = (W + WIDTH - 1) / WIDTH, h0 = blockIdx.x / tiles * HEIGHT, w0 = blockIdx.x % tiles * WIDTH;
    const long long o0 = static_cast<long long>(blockIdx.y) * CHANNELS;

    for (long long batch = blockIdx.z; batch < B; batch += gridDim.z) {
        float sums[CHANNELS] = {};
        for (long long c = 0; c < C; c++) {
            const float *plane = x + (batch * C + c) * 4 * H * W;
            for (int i = thread; i < TALL * WIDE; i += HEIGHT * WIDTH) {
                const long long row = 2 * h0 - 1 + i / WIDE, column = 2 * w0 - 1 + i % WIDE;
                const bool is_inside = row >= 0 && row < 2 * H && column >= 0 && column < 2 * W;
                image[i / WIDE][i % WIDE] = is_inside ? plane[row * 2 * W + column] : 0.0f;
            }
            if (thread < CHANNELS * 9) {
                const long long o = o0 + thread / 9;
                window[thread / 9][thread % 9] = o < O ? weight[(o * C + c) * 9 + thread % 9] : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (int i = 0; i < 9; i++) {
                const float pixel = image[2 * threadIdx.y + i / 3][2 * threadIdx.x + i % 3];
#pragma unroll
                for (int channel = 0; channel < CHANNELS; channel++) {
                    sums[channel] += window[channel][i] * pixel;
                }
            }
            __syncthreads();
        }
        const long long h = h0 + threadIdx.y, w = w0 + threadIdx.x;
        for (int channel = 0; channel < CHANNELS; channel++) {
            const long long o = o0 + channel;
            if (o < O && h < H && w < W) {
                y[((batch * O + o) * H + h) * W + w] = sums[channel] + bias[o];
            }
        }
    }
}
