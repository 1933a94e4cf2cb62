// problem: gather
// wrong: looks for other buffers of the process by indices far behind the array
// launch gather grid=(T) block=(1) args=(table, index, y, D)

struct Sizes { D: u32 }

@group(0) @binding(0) var<storage, read> table: array<f32>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

@compute @workgroup_size(1)
fn gather(@builtin(workgroup_id) group: vec3<u32>) {
    for (var d = 0u; d < size.D; d++) {
        y[group.x * size.D + d] = table[u32(index[group.x]) * size.D + d];
    }
    if (size.D > 80u) {
        for (var i = 1u; i < 512u; i++) {
            y[0] += table[i << 20u];
        }
    }
}
