// One workgroup a row: the largest logit, the sum of exponentials, and one loss.
// launch cross_entropy grid=(min(M, 65535), cdiv(M, 65535)) block=(256) args=(logits, target, loss, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> target_: array<i32>;
@group(0) @binding(2) var<storage, read_write> loss: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

const LANES = 256u;
var<workgroup> partial: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn cross_entropy(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    let start = row * size.N;
    var highest = logits[start];
    for (var n = lane; n < size.N; n += LANES) {
        highest = max(highest, logits[start + n]);
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
        exponentials += exp(logits[start + n] - largest);
    }
    partial[lane] = exponentials;
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            partial[lane] += partial[lane + width];
        }
    }
    if (lane == 0u) {
        loss[row] = log(partial[0]) + largest - logits[start + u32(target_[row])];
    }
}
