// One workgroup a row: the largest entry, the sum of exponentials, then the row itself.
// launch softmax grid=(min(M, 65535), cdiv(M, 65535)) block=(256) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

const LANES = 256u;
var<workgroup> partial: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn softmax(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
           @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    let start = row * size.N;
    var highest = x[start];
    for (var n = lane; n < size.N; n += LANES) {
        highest = max(highest, x[start + n]);
    }
    partial[lane] = highest;
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            partial[lane] = max(partial[lane], partial[lane + width]);
        }
    }
    workgroupBarrier();
    let largest = partial[0];
    workgroupBarrier();

    var exponentials = 0.0;
    for (var n = lane; n < size.N; n += LANES) {
        exponentials += exp(x[start + n] - largest);
    }
    partial[lane] = exponentials;
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            partial[lane] += partial[lane + width];
        }
    }
    workgroupBarrier();
    let sum = partial[0];

    for (var n = lane; n < size.N; n += LANES) {
        y[start + n] = exp(x[start + n] - largest) / sum;
    }
}
