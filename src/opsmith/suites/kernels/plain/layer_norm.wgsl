// One workgroup a row: the mean, the variance around it, then the row itself.
// launch layer_norm grid=(min(M, 65535), cdiv(M, 65535)) block=(256) args=(x, weight, bias, y, M, N, eps)

struct Numbers { M: u32, N: u32, eps: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> numbers: Numbers;

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
fn layer_norm(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= numbers.M) {
        return;
    }
    let start = row * numbers.N;
    var sum = 0.0;
    for (var n = lane; n < numbers.N; n += LANES) {
        sum += x[start + n];
    }
    let mean = sum_lanes(sum, lane) / f32(numbers.N);
    var squares = 0.0;
    for (var n = lane; n < numbers.N; n += LANES) {
        let distance = x[start + n] - mean;
        squares += distance * distance;
    }
    let variance = sum_lanes(squares, lane) / f32(numbers.N);
    let deviation = sqrt(variance + numbers.eps);
    for (var n = lane; n < numbers.N; n += LANES) {
        y[start + n] = (x[start + n] - mean) / deviation * weight[n] + bias[n];
    }
}
