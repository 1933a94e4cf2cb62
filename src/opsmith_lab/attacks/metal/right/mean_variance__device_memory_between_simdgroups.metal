// problem: mean_variance
// right: sums exchanged in a workspace, behind a barrier over device memory
// workspace means: fp32 [M, cdiv(N, 512)]
// workspace squares: fp32 [M, cdiv(N, 512)]
// workspace parts: fp32 [M * cdiv(N, 512), 4]
// launch reduce_chunks grid=(M * cdiv(N, 512)) block=(128) args=(x, means, squares, parts, N)
// launch merge_chunks grid=(cdiv(M, 128)) block=(128) args=(means, squares, mean, variance, M, N)
#include <metal_stdlib>
using namespace metal;

constant int CHUNK = 512;
constant int GROUPS = 4;

inline float sum_group(float value, device float *sums, uint lane)
{
    for (int offset = 16; offset > 0; offset /= 2) {
        value += simd_shuffle_xor(value, offset);
    }
    if (lane % 32 == 0) {
        sums[lane / 32] = value;
    }
    threadgroup_barrier(mem_flags::mem_device);
    float total = 0.0f;
    for (int group = 0; group < GROUPS; group++) {
        total += sums[group];
    }
    threadgroup_barrier(mem_flags::mem_device);  // the next call writes to `sums`
    return total;
}

kernel void reduce_chunks(device const float *x [[buffer(0)]], device float *means [[buffer(1)]],
                          device float *squares [[buffer(2)]], device float *parts [[buffer(3)]], constant long &N [[buffer(4)]],
                          uint3 local_id [[thread_position_in_threadgroup]],
                          uint3 group_id [[threadgroup_position_in_grid]],
                          uint3 group_size [[threads_per_threadgroup]])
{
    device float *sums = parts + long(group_id.x) * GROUPS;
    const long chunks = (N + CHUNK - 1) / CHUNK;
    const long m = group_id.x / chunks, start = group_id.x % chunks * CHUNK;
    const int count = static_cast<int>(min(N - start, static_cast<long>(CHUNK)));
    device const float *chunk = x + m * N + start;

    float sum = 0.0f;
    for (int n = local_id.x; n < count; n += group_size.x) {
        sum += chunk[n];
    }
    const float centre = sum_group(sum, sums, local_id.x) / count;

    float square = 0.0f;
    for (int n = local_id.x; n < count; n += group_size.x) {
        const float distance = chunk[n] - centre;
        square += distance * distance;
    }
    square = sum_group(square, sums, local_id.x);
    if (local_id.x == 0) {
        means[group_id.x] = centre;
        squares[group_id.x] = square;
    }
}

kernel void merge_chunks(device const float *means [[buffer(0)]], device const float *squares [[buffer(1)]],
                         device float *mean [[buffer(2)]], device float *variance [[buffer(3)]],
                         constant long &M [[buffer(4)]], constant long &N [[buffer(5)]],
                         uint3 local_id [[thread_position_in_threadgroup]],
                         uint3 group_id [[threadgroup_position_in_grid]],
                         uint3 group_size [[threads_per_threadgroup]])
{
    const long m = static_cast<long>(group_id.x) * group_size.x + local_id.x;
    if (m >= M) {
        return;
    }
    const long chunks = (N + CHUNK - 1) / CHUNK;
    float count = static_cast<float>(min(N, static_cast<long>(CHUNK)));
    float centre = means[m * chunks], square = squares[m * chunks];
    for (long chunk = 1; chunk < chunks; chunk++) {
        const float size = static_cast<float>(min(N - chunk * CHUNK, static_cast<long>(CHUNK)));
        const float distance = means[m * chunks + chunk] - centre;
        const float share = size / (count + size);
        centre += distance * share;
        square += squares[m * chunks + chunk] + distance * distance * count * share;
        count += size;
    }
    mean[m] = centre;
    variance[m] = square / count;
}
