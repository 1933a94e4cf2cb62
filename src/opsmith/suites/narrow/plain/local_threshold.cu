// A thread a pixel.
// launch local_threshold grid=(cdiv(W, 32), cdiv(H, 8), B) block=(32, 8) args=(image, y, H, W, offset)

extern "C" __global__ void local_threshold(const unsigned char *__restrict__ image, unsigned char *__restrict__ y,
                                           long long H, long long W, long long offset)
{
    const long long column = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long row = static_cast<long long>(blockIdx.y) * blockDim.y + threadIdx.y, start = blockIdx.z * H * W;
    if (row >= H || column >= W) {
        return;
    }
    int sum = 0;
    for (long long i = max(row - 1, 0LL); i <= min(row + 1, H - 1); i++) {
        for (long long j = max(column - 1, 0LL); j <= min(column + 1, W - 1); j++) {
            sum += image[start + i * W + j];
        }
    }
    const long long place = start + row * W + column;
    y[place] = 9 * (image[place] + offset) > sum ? 255 : 0;
}
