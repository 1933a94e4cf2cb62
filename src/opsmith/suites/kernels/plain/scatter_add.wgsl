// One workgroup for 64 columns of a row of the table: it reads the whole index, 64 entries at a time, and adds the rows
// that name its own. So sums have one order, which atomics would not have.
// launch scatter_add grid=(min(V, 65535), cdiv(V, 65535), cdiv(D, 64)) block=(64) args=(table, index, rows, y, T, V, D)

struct Sizes { T: u32, V: u32, D: u32 }

@group(0) @binding(0) var<storage, read> table: array<f32>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read> rows: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

const LANES = 64u;
var<workgroup> names: array<u32, LANES>;

@compute @workgroup_size(LANES)
fn scatter_add(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.V) {
        return;
    }
    let column = group.z * LANES + lane;
    var sum = 0.0;
    if (column < size.D) {
        sum = table[row * size.D + column];
    }
    for (var start = 0u; start < size.T; start += LANES) {
        let count = min(LANES, size.T - start);
        if (lane < count) {
            names[lane] = u32(index[start + lane]);
        }
        workgroupBarrier();
        if (column < size.D) {
            for (var i = 0u; i < count; i++) {
                if (names[i] == row) {
                    sum += rows[(start + i) * size.D + column];
                }
            }
        }
        workgroupBarrier();
    }
    if (column < size.D) {
        y[row * size.D + column] = sum;
    }
}
