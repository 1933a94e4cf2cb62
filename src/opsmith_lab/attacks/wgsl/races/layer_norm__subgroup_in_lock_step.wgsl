// problem: layer_norm
// wrong: the last steps of a tree of 8 invocations have no barrier
// launch layer_norm grid=(min(M, 65535), cdiv(M, 65535)) block=(32) args=(x, weight, bias, y, M, N, eps)

struct Sizes { M: u32, N: u32, eps: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

var<workgroup> parts: array<f32, 32>;

fn sum_lanes(own: f32, lane: u32) -> f32 {
    workgroupBarrier();
    parts[lane] = own;
    workgroupBarrier();
    if (lane < 16u) {
        parts[lane] += parts[lane + 16u];
    }
    workgroupBarrier();
    if (lane < 8u) {
        parts[lane] += parts[lane + 8u];
    }
    workgroupBarrier();
    for (var width = 4u; width > 0u; width /= 2u) {
        if (lane < width) {
            parts[lane] += parts[lane + width];
        }
    }
    workgroupBarrier();
    return parts[0];
}

@compute @workgroup_size(32)
fn layer_norm(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    let start = row * size.N;
    var own = 0.0;
    for (var n = lane; n < size.N; n += 32u) {
        own += x[start + n];
    }
    let mean = sum_lanes(own, lane) / f32(size.N);
    own = 0.0;
    for (var n = lane; n < size.N; n += 32u) {
        own += (x[start + n] - mean) * (x[start + n] - mean);
    }
    let scale = inverseSqrt(sum_lanes(own, lane) / f32(size.N) + size.eps);
    for (var n = lane; n < size.N; n += 32u) {
        y[start + n] = (x[start + n] - mean) * scale * weight[n] + bias[n];
    }
}
