// problem: scatter_add
// right: rows of an entry are listed by atomicAdd on a counter; their order is open
// launch scatter_add grid=(min(V, 65535), cdiv(V, 65535)) block=(32) args=(table, index, rows, y, T, V, D)

struct Sizes { T: u32, V: u32, D: u32 }

@group(0) @binding(0) var<storage, read> table: array<f32>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read> rows: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

var<workgroup> count: atomic<u32>;
var<workgroup> places: array<u32, 32>;

@compute @workgroup_size(32)
fn scatter_add(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.V) {
        return;
    }
    for (var d = lane; d < size.D; d += 32u) {
        y[row * size.D + d] = table[row * size.D + d];
    }
    for (var start = 0u; start < size.T; start += 32u) {
        if (start + lane < size.T) {
            if (u32(index[start + lane]) == row) {
                places[atomicAdd(&count, 1u)] = start + lane;
            }
        }
        workgroupBarrier();
        for (var d = lane; d < size.D; d += 32u) {
            for (var i = 0u; i < atomicLoad(&count); i++) {
                y[row * size.D + d] += rows[places[i] * size.D + d];
            }
        }
        workgroupBarrier();
        if (lane == 0u) {
            atomicStore(&count, 0u);
        }
        workgroupBarrier();
    }
}
