// One invocation an entry, and the entries a whole grid further on.
// launch gather grid=(min(cdiv(T * D, 256), 65535)) block=(256) args=(table, index, y, T, D)

struct Sizes { T: u32, D: u32 }

@group(0) @binding(0) var<storage, read> table: array<f32>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

const LANES = 256u;

@compute @workgroup_size(LANES)
fn gather(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < size.T * size.D; i += groups.x * LANES) {
        y[i] = table[u32(index[i / size.D]) * size.D + i % size.D];
    }
}
