enable f16;

// First the weights of every query, one workgroup each, into a workspace; then the sums of values that they weigh.
// workspace weights: fp32 [H, L, S]
// launch weigh_keys grid=(min(L, 65535), cdiv(L, 65535), H) block=(64) args=(q, k, mask, weights, H, L, S, D)
// launch sum_values grid=(min(cdiv(H * L * D, 64), 65535)) block=(64) args=(weights, v, y, H, L, S, D)

struct Sizes { H: u32, L: u32, S: u32, D: u32 }

const LANES = 64u;
const LOWEST = -3.4028234e38;

@group(0) @binding(0) var<storage, read> q: array<f16>;
@group(0) @binding(1) var<storage, read> k: array<f16>;
@group(0) @binding(2) var<storage, read> mask: array<u32>;
@group(0) @binding(3) var<storage, read_write> weights: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

var<workgroup> partial: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn weigh_keys(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) lane: u32) {
    let query = group.y * groups.x + group.x;
    if (query >= size.L) {
        return;
    }
    let head = group.z;
    let start = (head * size.L + query) * size.S;
    var highest = LOWEST;
    for (var key = lane; key < size.S; key += LANES) {
        if (mask[query * size.S + key] != 0u) {
            var score = 0.0;
            for (var d = 0u; d < size.D; d++) {
                score += f32(q[(head * size.L + query) * size.D + d]) * f32(k[(head * size.S + key) * size.D + d]);
            }
            weights[start + key] = score / sqrt(f32(size.D));
            highest = max(highest, weights[start + key]);
        }
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
    for (var key = lane; key < size.S; key += LANES) {
        var weight = 0.0;
        if (mask[query * size.S + key] != 0u) {
            weight = exp(weights[start + key] - largest);
        }
        weights[start + key] = weight;
        exponentials += weight;
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
    for (var key = lane; key < size.S; key += LANES) {
        weights[start + key] /= max(sum, 1e-30);  // a query that may see no key has weights of zero
    }
}

@group(0) @binding(0) var<storage, read> weighed: array<f32>;
@group(0) @binding(1) var<storage, read> v: array<f16>;
@group(0) @binding(2) var<storage, read_write> y: array<f16>;
@group(0) @binding(3) var<uniform> extent: Sizes;

@compute @workgroup_size(LANES)
fn sum_values(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < extent.H * extent.L * extent.D; i += groups.x * LANES) {
        let query = i / extent.D;
        let head = query / extent.L;
        var sum = 0.0;
        for (var key = 0u; key < extent.S; key++) {
            sum += weighed[query * extent.S + key] * f32(v[(head * extent.S + key) * extent.D + i % extent.D]);
        }
        y[i] = f16(sum);
    }
}
