// A block an image, which counts in shared memory.
// launch image_histogram grid=(B) block=(256) args=(image, counts, N)

extern "C" __global__ void image_histogram(const unsigned char *__restrict__ image, int *__restrict__ counts,
                                           long long N)
{
    __shared__ int bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (long long n = threadIdx.x; n < N; n += blockDim.x) {
        atomicAdd(&bins[image[blockIdx.x * N + n]], 1);
    }
    __syncthreads();
    counts[blockIdx.x * 256 + threadIdx.x] = bins[threadIdx.x];
}
