// A thread a pixel.
// launch image_normalise grid=(cdiv(H * W, 128), B) block=(128) args=(image, mean, deviation, y, H, W, C)

extern "C" __global__ void image_normalise(const unsigned char *__restrict__ image, const float *__restrict__ mean,
                                           const float *__restrict__ deviation, float *__restrict__ y, long long H,
                                           long long W, long long C)
{
    const long long pixels = H * W, b = blockIdx.y;
    const long long pixel = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (long long c = 0; pixel < pixels && c < C; c++) {
        const float value = image[(b * pixels + pixel) * C + c] / 255.0f;
        y[(b * C + c) * pixels + pixel] = (value - mean[c]) / deviation[c];
    }
}
