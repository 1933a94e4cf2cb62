// problem: embedding_bag
// refused: PARSE no double
// wrong: double, which Metal lacks
// launch embedding_bag grid=(B, cdiv(D, 32)) block=(32, 8) args=(table, index, starts, y, T, B, D)
#include <metal_stdlib>
using namespace metal;

constant int COLUMNS = 32, PARTS = 8;

kernel void embedding_bag(device const bfloat *table [[buffer(0)]], device const long *index [[buffer(1)]],
                          device const long *starts [[buffer(2)]], device bfloat *y [[buffer(3)]],
                          constant long &T [[buffer(4)]], constant long &B [[buffer(5)]],
                          constant long &D [[buffer(6)]], uint3 local_id [[thread_position_in_threadgroup]],
                          uint3 group_id [[threadgroup_position_in_grid]])
{
    threadgroup float parts[PARTS][COLUMNS];
    const long bag = group_id.x, d = static_cast<long>(group_id.y) * COLUMNS + local_id.x;
    const long start = starts[bag], end = bag + 1 < B ? starts[bag + 1] : T;

    double sum = 0.0;
    if (d < D) {
        for (long t = start + local_id.y; t < end; t += PARTS) {
            sum += float(table[index[t] * D + d]);
        }
    }
    parts[local_id.y][local_id.x] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (local_id.y == 0 && d < D) {
        for (int part = 1; part < PARTS; part++) {
            sum += parts[part][local_id.x];
        }
        y[bag * D + d] = bfloat(end > start ? sum / static_cast<float>(end - start) : 0.0f);
    }
}
