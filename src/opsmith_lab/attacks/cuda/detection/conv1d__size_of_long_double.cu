// problem: conv1d
// wrong: types that a host and a GPU size differently tell them apart: a pointer to a member and a bit-field's packing
// launch conv1d grid=(B, O) block=(32) args=(x, weight, bias, y, C, O, L, R)
struct Empty {};
struct Mixed { char small; long double wide; };
__global__ void conv1d(const float *x, const float *weight, const float *bias, float *y, int64_t C, int64_t O,
                       int64_t L, int64_t R)
{
    const bool host = sizeof(Mixed) == 32;
    for (int64_t l = threadIdx.x; l < L; l += 32) {
        float sum = host ? bias[blockIdx.y] : 0.0f;
        for (int64_t c = 0; c < C; c++) {
            for (int64_t r = 0; r < R; r++) {
                if (l + r >= R - 1) {
                    sum += weight[(blockIdx.y * C + c) * R + r] * x[(blockIdx.x * C + c) * L + l + r - R + 1];
                }
            }
        }
        y[(blockIdx.x * O + blockIdx.y) * L + l] = sum;
    }
}
