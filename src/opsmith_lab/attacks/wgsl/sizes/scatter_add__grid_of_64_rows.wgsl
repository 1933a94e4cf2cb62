// problem: scatter_add
// wrong: at most 64 rows of the table are written
// launch scatter_add grid=(min(V, 64)) block=(32) args=(table, index, rows, y, T, D)

struct Sizes { T: u32, D: u32 }

@group(0) @binding(0) var<storage, read> table: array<f32>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read> rows: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

@compute @workgroup_size(32)
fn scatter_add(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    for (var d = lane; d < size.D; d += 32u) {
        var sum = table[group.x * size.D + d];
        for (var t = 0u; t < size.T; t++) {
            if (u32(index[t]) == group.x) {
                sum += rows[t * size.D + d];
            }
        }
        y[group.x * size.D + d] = sum;
    }
}
