// problem: scatter_add
// wrong: rows are added by an atomic load and an atomic store, one invocation a workgroup
// workspace sums: fp32 [V, D]
// launch begin grid=(cdiv(V * D, 64)) block=(64) args=(table, sums, V, D)
// launch add grid=(T) block=(1) args=(index, rows, sums, D)
// launch finish grid=(cdiv(V * D, 64)) block=(64) args=(sums, y, V, D)

struct Sizes { V: u32, D: u32 }
struct Width { D: u32 }

@group(0) @binding(0) var<storage, read> table: array<f32>;
@group(0) @binding(1) var<storage, read_write> cleared: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

@compute @workgroup_size(64)
fn begin(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < size.V * size.D) {
        cleared[id.x] = table[id.x];
    }
}

@group(0) @binding(0) var<storage, read> index: array<i32>;
@group(0) @binding(1) var<storage, read> rows: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> width: Width;

@compute @workgroup_size(1)
fn add(@builtin(workgroup_id) group: vec3<u32>) {
    for (var d = 0u; d < width.D; d++) {
        let place = u32(index[group.x]) * width.D + d;
        let before = bitcast<f32>(atomicLoad(&sums[place]));
        atomicStore(&sums[place], bitcast<u32>(before + rows[group.x * width.D + d]));
    }
}

@group(0) @binding(0) var<storage, read> ready: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> extent: Sizes;

@compute @workgroup_size(64)
fn finish(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < extent.V * extent.D) {
        y[id.x] = ready[id.x];
    }
}
