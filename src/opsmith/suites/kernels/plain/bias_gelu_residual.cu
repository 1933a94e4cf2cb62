// Elementwise: four entries at a time where rows are a multiple of four, so that all four are of one row, else one.
// launch bias_gelu_residual grid=(min(cdiv(M * N, 256), 2048)) block=(256) args=(x, bias, residual, y, M, N)

// 1 + erf(v) as erfc(-v): no digits are lost where erf(v) is close to -1.
__device__ __forceinline__ float apply_gelu(float value) { return 0.5f * value * erfcf(-0.70710678f * value); }

extern "C" __global__ void bias_gelu_residual(const float *__restrict__ x, const float *__restrict__ bias,
                                              const float *__restrict__ residual, float *__restrict__ y, long long M,
                                              long long N)
{
    const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    if (N % 4 != 0) {
        for (long long i = first; i < M * N; i += stride) {
            y[i] = apply_gelu(x[i] + __ldg(bias + i % N)) + residual[i];
        }
        return;
    }
    const float4 *x4 = reinterpret_cast<const float4 *>(x), *bias4 = reinterpret_cast<const float4 *>(bias);
    const float4 *residual4 = reinterpret_cast<const float4 *>(residual);
    float4 *y4 = reinterpret_cast<float4 *>(y);
    for (long long i = first; i < M * N / 4; i += stride) {
        const float4 a = x4[i], b = __ldg(bias4 + i % (N / 4)), c = residual4[i];
        y4[i] = make_float4(apply_gelu(a.x + b.x) + c.x, apply_gelu(a.y + b.y) + c.y, apply_gelu(a.z + b.z) + c.z,
                            apply_gelu(a.w + b.w) + c.w);
    }
}
