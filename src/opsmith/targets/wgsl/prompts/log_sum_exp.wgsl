// One workgroup a row: its largest entry, then the sum of exponentials, each by a tree in workgroup memory.
// launch log_sum_exp grid=(min(M, 65535), cdiv(M, 65535), 1) block=(128, 1, 1) args=(x, y, M, N, scale)

struct Numbers { M: u32, N: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> numbers: Numbers;

const LANES = 128u;
var<workgroup> partial: array<f32, LANES>;

@compute @workgroup_size(LANES, 1, 1)
fn log_sum_exp(@builtin(workgroup_id) block: vec3<u32>, @builtin(num_workgroups) blocks: vec3<u32>,
               @builtin(local_invocation_index) lane: u32) {
    let row = block.y * blocks.x + block.x;
    if (row >= numbers.M) {
        return;
    }
    let start = row * numbers.N;
    var highest = numbers.scale * x[start];
    for (var n = lane; n < numbers.N; n += LANES) {
        highest = max(highest, numbers.scale * x[start + n]);
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

    var sum = 0.0;
    for (var n = lane; n < numbers.N; n += LANES) {
        sum += exp(numbers.scale * x[start + n] - largest);
    }
    partial[lane] = sum;
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            partial[lane] += partial[lane + width];
        }
    }
    if (lane == 0u) {
        y[row] = largest + log(partial[0]);
    }
}
