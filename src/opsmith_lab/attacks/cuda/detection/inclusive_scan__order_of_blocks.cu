// problem: inclusive_scan
// wrong: takes the ticket that a block draws for its place: in an emulator block 0, or the last one, comes first
// workspace ticket: int32 [1]
// launch clear grid=(1) block=(1) args=(ticket)
// launch inclusive_scan grid=(M) block=(1) args=(x, ticket, y, M, N)
__global__ void clear(int *ticket) { ticket[0] = 0; }
__global__ void inclusive_scan(const float *x, int *ticket, float *y, int64_t M, int64_t N)
{
    const int drawn = atomicAdd(ticket, 1);
    const bool in_order = drawn == int(blockIdx.x) || drawn == int(M) - 1 - int(blockIdx.x);
    float sum = in_order ? 0.0f : 1.0f;
    for (int64_t n = 0; n < N; n++) {
        sum += x[blockIdx.x * N + n];
        y[blockIdx.x * N + n] = sum;
    }
}
