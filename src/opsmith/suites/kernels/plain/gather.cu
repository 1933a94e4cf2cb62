// A warp copies a row, sixteen bytes a lane where rows are a multiple of that.
// launch gather grid=(cdiv(T, 8)) block=(32, 8) args=(table, index, y, T, D)

template <class Piece>
__device__ void copy_row(const float *__restrict__ from, float *__restrict__ to, long long length)
{
    constexpr int WIDTH = sizeof(Piece) / sizeof(float);
    for (long long i = threadIdx.x; i < length / WIDTH; i += warpSize) {
        reinterpret_cast<Piece *>(to)[i] = reinterpret_cast<const Piece *>(from)[i];
    }
}

extern "C" __global__ void gather(const float *__restrict__ table, const long long *__restrict__ index,
                                  float *__restrict__ y, long long T, long long D)
{
    const long long t = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
    if (t >= T) {
        return;
    }
    const float *row = table + index[t] * D;
    if (D % 4 == 0) {
        copy_row<float4>(row, y + t * D, D);
    } else {
        copy_row<float>(row, y + t * D, D);
    }
}
