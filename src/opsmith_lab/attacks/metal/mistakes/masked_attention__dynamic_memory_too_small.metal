// problem: masked_attention
// refused: RUN raise shared=
// wrong: half the threadgroup memory that it uses
// launch masked_attention grid=(L, H) block=(128) shared=4 * D args=(q, k, v, mask, y, L, S, D)
#include <metal_stdlib>
using namespace metal;

constant int KEYS = 128, GROUPS = KEYS / 32;

struct Largest {
    static float combine(float a, float b) { return max(a, b); }
};
struct Sum {
    static float combine(float a, float b) { return a + b; }
};

template <class Operation>
inline float reduce_simdgroup(float value)
{
    for (int offset = 16; offset > 0; offset /= 2) {
        value = Operation::combine(value, simd_shuffle_xor(value, offset));
    }
    return value;
}

template <class Operation>
inline float reduce_group(float value, threadgroup float *parts, uint lane)
{
    value = reduce_simdgroup<Operation>(value);
    if (lane % 32 == 0) {
        parts[lane / 32] = value;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    value = parts[0];
    for (int group = 1; group < GROUPS; group++) {
        value = Operation::combine(value, parts[group]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the next call writes to `parts`
    return value;
}

kernel void masked_attention(device const half *q [[buffer(0)]], device const half *k [[buffer(1)]],
                             device const half *v [[buffer(2)]], device const bool *mask [[buffer(3)]],
                             device half *y [[buffer(4)]], constant long &L [[buffer(5)]],
                             constant long &S [[buffer(6)]], constant long &D [[buffer(7)]], threadgroup float *dynamic [[threadgroup(0)]],
                             uint3 local_id [[thread_position_in_threadgroup]],
                             uint3 group_id [[threadgroup_position_in_grid]])
{
    threadgroup float *query = dynamic;
    threadgroup float *result = dynamic + D;
    threadgroup float weights[KEYS], parts[GROUPS];
    const int lane = local_id.x % 32, group = local_id.x / 32;
    const long l = group_id.x, h = group_id.y;

    const float scale = rsqrt(static_cast<float>(D));
    for (long d = local_id.x; d < D; d += KEYS) {
        query[d] = float(q[(h * L + l) * D + d]) * scale;
        result[d] = 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    float largest = -INFINITY, sum = 0.0f;  // of all tiles so far, the same in every thread
    for (long first = 0; first < S; first += KEYS) {
        for (int i = group; i < KEYS; i += GROUPS) {
            const long s = first + i;
            float score = -INFINITY;
            if (s < S && mask[l * S + s]) {  // the same in all lanes
                score = 0.0f;
                for (long d = lane; d < D; d += 32) {
                    score += query[d] * float(k[(h * S + s) * D + d]);
                }
                score = reduce_simdgroup<Sum>(score);
            }
            if (lane == 0) {
                weights[i] = score;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        const float score = weights[local_id.x];
        const float next = max(largest, reduce_group<Largest>(score, parts, local_id.x));
        if (next == -INFINITY) {
            continue;  // the whole threadgroup: no key so far may be seen
        }
        const float weight = exp(score - next), correction = exp(largest - next);
        weights[local_id.x] = weight;
        sum = sum * correction + reduce_group<Sum>(weight, parts, local_id.x);
        largest = next;

        const int count = static_cast<int>(min(S - first, static_cast<long>(KEYS)));
        for (long d = local_id.x; d < D; d += KEYS) {
            float total = result[d] * correction;
            for (int i = 0; i < count; i++) {
                total += weights[i] * float(v[(h * S + first + i) * D + d]);
            }
            result[d] = total;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);  // all have read the weights before the next tile overwrites them
    }

    for (long d = local_id.x; d < D; d += KEYS) {
        y[(h * L + l) * D + d] = half(sum > 0.0f ? result[d] / sum : 0.0f);
    }
}
