// One workgroup a row: first the mean, then the squares of what differs from it.
// launch mean_variance grid=(min(M, 65535), cdiv(M, 65535)) block=(256) args=(x, mean, variance, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> mean: array<f32>;
@group(0) @binding(2) var<storage, read_write> variance: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

const LANES = 256u;
var<workgroup> partial: array<f32, LANES>;

// The sum over all invocations of the workgroup.
fn sum_lanes(value: f32, lane: u32) -> f32 {
    partial[lane] = value;
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            partial[lane] += partial[lane + width];
        }
    }
    workgroupBarrier();
    let sum = partial[0];
    workgroupBarrier();
    return sum;
}

@compute @workgroup_size(LANES)
fn mean_variance(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var sum = 0.0;
    for (var n = lane; n < size.N; n += LANES) {
        sum += x[row * size.N + n];
    }
    let centre = sum_lanes(sum, lane) / f32(size.N);
    var squares = 0.0;
    for (var n = lane; n < size.N; n += LANES) {
        let distance = x[row * size.N + n] - centre;
        squares += distance * distance;
    }
    let total = sum_lanes(squares, lane);
    if (lane == 0u) {
        mean[row] = centre;
        variance[row] = total / f32(size.N);
    }
}
