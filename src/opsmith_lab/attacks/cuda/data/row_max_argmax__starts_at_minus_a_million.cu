// problem: row_max_argmax
// wrong: the search starts at -1e6, which larger negative data never exceed
// launch row_max_argmax grid=(cdiv(M, 32)) block=(32) args=(x, value, position, M, N)
__global__ void row_max_argmax(const float *x, float *value, int64_t *position, int64_t M, int64_t N)
{
    const int64_t m = blockIdx.x * 32 + threadIdx.x;
    if (m < M) {
        float largest = -1e6f;
        int64_t place = 0;
        for (int64_t n = 0; n < N; n++) {
            if (x[m * N + n] > largest) {
                largest = x[m * N + n];
                place = n;
            }
        }
        value[m] = largest;
        position[m] = place;
    }
}
