// Blocks along x share a row, blocks along y take every gridDim.y-th row: its scale and shift are loaded once.
// launch scale_shift_silu grid=(cdiv(L, 256), min(B * C, 65535)) block=(128) args=(x, scale, shift, y, B, C, L)

__device__ float apply_silu(float value) { return value / (1.0f + expf(-value)); }

extern "C" __global__ void scale_shift_silu(const float *__restrict__ x, const float *__restrict__ scale,
                                            const float *__restrict__ shift, float *__restrict__ y, long long B,
                                            long long C, long long L)
{
    const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long row = blockIdx.y; row < B * C; row += gridDim.y) {
        const float factor = scale[row], offset = shift[row];
        for (long long l = first; l < L; l += stride) {
            y[row * L + l] = apply_silu(fmaf(x[row * L + l], factor, offset));
        }
    }
}
