// One workgroup a row. Rows beyond 65535 continue in the grid's second dimension, the most that WebGPU allows in one.
// launch row_sum grid=(min(M, 65535), cdiv(M, 65535)) block=(256) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

const LANES = 256u;
var<workgroup> partial: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
           @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var sum = 0.0;
    for (var n = lane; n < size.N; n += LANES) {
        sum += x[row * size.N + n];
    }
    partial[lane] = sum;
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            partial[lane] += partial[lane + width];
        }
    }
    if (lane == 0u) {
        y[row] = partial[0];
    }
}
