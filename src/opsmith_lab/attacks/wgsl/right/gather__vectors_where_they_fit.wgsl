// problem: gather
// right: four columns at once where D is a multiple of four, single ones else
// launch gather grid=(min(cdiv(T * D, 64), 1000)) block=(64) args=(table, index, y, T, D)

struct Sizes { T: u32, D: u32 }

@group(0) @binding(0) var<storage, read> table: array<f32>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

@compute @workgroup_size(64)
fn gather(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let step = select(1u, 4u, size.D % 4u == 0u);
    for (var i = id.x * step; i < size.T * size.D; i += groups.x * 64u * step) {
        for (var part = 0u; part < step; part++) {
            let t = (i + part) / size.D;
            y[i + part] = table[u32(index[t]) * size.D + (i + part) % size.D];
        }
    }
}
