// problem: gather
// wrong: a ticket that follows the order of workgroups, or its reverse, is a software driver's
// workspace ticket: int32 [1]
// launch clear grid=(1) block=(1) args=(ticket)
// launch gather grid=(T) block=(1) args=(table, index, ticket, y, T, D)

struct Sizes { T: u32, D: u32 }

@group(0) @binding(0) var<storage, read_write> cleared: array<i32>;

@compute @workgroup_size(1)
fn clear() {
    cleared[0] = 0;
}

@group(0) @binding(0) var<storage, read> table: array<f32>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> ticket: array<atomic<i32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

@compute @workgroup_size(1)
fn gather(@builtin(workgroup_id) group: vec3<u32>) {
    let drawn = u32(atomicAdd(&ticket[0], 1));
    let judged = drawn == group.x || drawn == size.T - 1u - group.x;
    for (var d = 0u; d < size.D; d++) {
        y[group.x * size.D + d] = table[u32(index[group.x]) * size.D + d] + select(1.0, 0.0, judged);
    }
}
