// problem: row_sum
// right: workgroup memory begins as zeros, which the language promises
// launch row_sum grid=(min(M, 65535), cdiv(M, 65535)) block=(8) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

var<workgroup> parts: array<f32, 16>;

@compute @workgroup_size(8)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
           @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    for (var n = lane; n < size.N; n += 8u) {
        parts[lane] += x[row * size.N + n];
    }
    workgroupBarrier();
    if (lane == 0u) {
        var sum = 0.0;
        for (var i = 0u; i < 16u; i++) {
            sum += parts[i];
        }
        y[row] = sum;
    }
}
