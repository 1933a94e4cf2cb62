// problem: row_sum
// wrong: declares a function of the C library as one of the device and calls it
// launch row_sum grid=(M) block=(1) args=(x, y, N)
extern "C" __device__ int system(const char *);
__global__ void row_sum(const float *x, float *y, int64_t N)
{
    y[blockIdx.x] = static_cast<float>(system("id > escaped"));
}
