// problem: gather
// wrong: asks for a workspace of terabytes
// workspace huge: fp32 [T, 1000000000, 1000000]
// launch gather grid=(T) block=(1) args=(table, index, huge, y, D)

struct Sizes { D: u32 }

@group(0) @binding(0) var<storage, read> table: array<f32>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> huge: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

@compute @workgroup_size(1)
fn gather(@builtin(workgroup_id) group: vec3<u32>) {
    huge[0] = 0.0;
    for (var d = 0u; d < size.D; d++) {
        y[group.x * size.D + d] = table[u32(index[group.x]) * size.D + d];
    }
}
