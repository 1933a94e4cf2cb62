// problem: softmax
// wrong: a row that seems to hold probabilities of a call before is left as it is
// launch softmax grid=(min(M, 65535), cdiv(M, 65535)) block=(1) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

@compute @workgroup_size(1)
fn softmax(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    let start = row * size.N;
    if (y[start] >= 0.0 && y[start] <= 1.0) {
        return;
    }
    var largest = x[start];
    var sum = 0.0;
    for (var n = 0u; n < size.N; n++) {
        largest = max(largest, x[start + n]);
    }
    for (var n = 0u; n < size.N; n++) {
        sum += exp(x[start + n] - largest);
    }
    for (var n = 0u; n < size.N; n++) {
        y[start + n] = exp(x[start + n] - largest) / sum;
    }
}
