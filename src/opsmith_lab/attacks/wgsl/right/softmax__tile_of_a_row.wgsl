// problem: softmax
// right: rows of up to 512 entries are kept in workgroup memory, longer ones read three times
// launch softmax grid=(min(M, 65535), cdiv(M, 65535)) block=(32) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

var<workgroup> line: array<f32, 512>;
var<workgroup> parts: array<f32, 32>;

fn entry(start: u32, n: u32) -> f32 {
    if (size.N <= 512u) {
        return line[n];
    }
    return x[start + n];
}

@compute @workgroup_size(32)
fn softmax(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
           @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    let start = row * size.N;
    if (size.N <= 512u) {
        for (var n = lane; n < size.N; n += 32u) {
            line[n] = x[start + n];
        }
    }
    workgroupBarrier();
    var largest = entry(start, 0u);
    for (var n = 1u; n < size.N; n++) {
        largest = max(largest, entry(start, n));
    }
    var sum = 0.0;
    for (var n = lane; n < size.N; n += 32u) {
        sum += exp(entry(start, n) - largest);
    }
    parts[lane] = sum;
    workgroupBarrier();
    sum = 0.0;
    for (var i = 0u; i < 32u; i++) {
        sum += parts[i];
    }
    for (var n = lane; n < size.N; n += 32u) {
        y[start + n] = exp(entry(start, n) - largest) / sum;
    }
}
