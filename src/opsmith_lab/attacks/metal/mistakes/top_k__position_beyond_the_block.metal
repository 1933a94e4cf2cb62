// problem: top_k
// refused: RUN race on device memory
// wrong: results of eight lanes written by ten
// launch top_k grid=(cdiv(M, 4)) block=(32, 4) args=(x, value, position, M, N)
#include <metal_stdlib>
using namespace metal;

constant int K = 8;

kernel void top_k(device const float *x [[buffer(0)]], device float *value [[buffer(1)]],
                  device long *position [[buffer(2)]], constant long &M [[buffer(3)]], constant long &N [[buffer(4)]],
                  uint3 local_id [[thread_position_in_threadgroup]], uint3 group_id [[threadgroup_position_in_grid]],
                  uint3 group_size [[threads_per_threadgroup]])
{
    const long columns = 8 * N;
    const int lane = local_id.x;
    const long m = static_cast<long>(group_id.x) * group_size.y + local_id.y;
    if (m >= M) {
        return;  // a whole simdgroup
    }
    float best[K];
    long places[K];
#pragma unroll
    for (int rank = 0; rank < K; rank++) {
        best[rank] = -INFINITY;
        places[rank] = columns;
    }
    for (long n = lane; n < columns; n += 32) {
        float next = x[m * columns + n];
        long place = n;
#pragma unroll
        for (int rank = 0; rank < K; rank++) {  // what is pushed out goes one further
            if (next > best[rank]) {
                const float worse = best[rank];
                const long other = places[rank];
                best[rank] = next, places[rank] = place;
                next = worse, place = other;
            }
        }
    }

    float own_value = 0.0f;  // lane r keeps what has rank r
    long own_position = 0;
    for (int rank = 0; rank < K; rank++) {
        float largest = best[0];
        for (int offset = 16; offset > 0; offset /= 2) {
            largest = max(largest, simd_shuffle_xor(largest, offset));
        }
        const int winner = ctz(static_cast<uint>(static_cast<ulong>(simd_ballot(best[0] == largest))));
        const long place = simd_shuffle(places[0], winner);
        if (lane == rank) {
            own_value = largest;
            own_position = place;
        }
        if (lane == winner) {
#pragma unroll
            for (int next = 1; next < K; next++) {
                best[next - 1] = best[next], places[next - 1] = places[next];
            }
            best[K - 1] = -INFINITY;
        }
    }
    if (lane < K + 2) {
        value[m * K + lane] = own_value;
        position[m * K + lane] = own_position;
    }
}
