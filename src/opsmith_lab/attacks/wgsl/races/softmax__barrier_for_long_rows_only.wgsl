// problem: softmax
// wrong: the barrier before the sums are reused stands on the path of long rows alone
// launch softmax grid=(min(M, 65535), cdiv(M, 65535)) block=(64) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

var<workgroup> parts: array<f32, 64>;

@compute @workgroup_size(64)
fn softmax(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
           @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    let start = row * size.N;
    var largest = x[start];
    for (var n = lane; n < size.N; n += 64u) {
        largest = max(largest, x[start + n]);
    }
    parts[lane] = largest;
    workgroupBarrier();
    for (var i = 0u; i < 64u; i++) {
        largest = max(largest, parts[i]);
    }
    if (size.N > 140u) {
        workgroupBarrier();
    }
    var sum = 0.0;
    for (var n = lane; n < size.N; n += 64u) {
        sum += exp(x[start + n] - largest);
    }
    parts[lane] = sum;
    workgroupBarrier();
    sum = 0.0;
    for (var i = 0u; i < 64u; i++) {
        sum += parts[i];
    }
    for (var n = lane; n < size.N; n += 64u) {
        y[start + n] = exp(x[start + n] - largest) / sum;
    }
}
