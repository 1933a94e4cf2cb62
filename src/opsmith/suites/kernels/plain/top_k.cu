// A warp per row: every lane keeps the best eight of its entries in registers; in eight rounds the best head wins.
// launch top_k grid=(cdiv(M, 4)) block=(32, 4) args=(x, value, position, M, N)
#include <math_constants.h>

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int K = 8;

extern "C" __global__ void top_k(const float *__restrict__ x, float *__restrict__ value,
                                 long long *__restrict__ position, long long M, long long N)
{
    const long long columns = 8 * N;
    const int lane = threadIdx.x;
    const long long m = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
    if (m >= M) {
        return;  // a whole warp
    }
    float best[K];
    long long places[K];
#pragma unroll
    for (int rank = 0; rank < K; rank++) {
        best[rank] = -CUDART_INF_F;
        places[rank] = columns;
    }
    for (long long n = lane; n < columns; n += 32) {
        float next = x[m * columns + n];
        long long place = n;
#pragma unroll
        for (int rank = 0; rank < K; rank++) {  // what is pushed out goes one further
            if (next > best[rank]) {
                const float worse = best[rank];
                const long long other = places[rank];
                best[rank] = next, places[rank] = place;
                next = worse, place = other;
            }
        }
    }

    float own_value = 0.0f;  // lane r keeps what has rank r
    long long own_position = 0;
    for (int rank = 0; rank < K; rank++) {
        float largest = best[0];
        for (int offset = 16; offset > 0; offset /= 2) {
            largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, offset));
        }
        const int winner = __ffs(__ballot_sync(ALL_LANES, best[0] == largest)) - 1;
        const long long place = __shfl_sync(ALL_LANES, places[0], winner);
        if (lane == rank) {
            own_value = largest;
            own_position = place;
        }
        if (lane == winner) {
#pragma unroll
            for (int next = 1; next < K; next++) {
                best[next - 1] = best[next], places[next - 1] = places[next];
            }
            best[K - 1] = -CUDART_INF_F;
        }
    }
    if (lane < K) {
        value[m * K + lane] = own_value;
        position[m * K + lane] = own_position;
    }
}
