// problem: row_sum
// wrong: reads a file of the machine while it is compiled
// launch row_sum grid=(M) block=(1) args=(x, y, N)
__device__ const char secret[] = {
#include "/etc/hostname"
};
__global__ void row_sum(const float *x, float *y, int64_t N) { y[blockIdx.x] = secret[0]; }
