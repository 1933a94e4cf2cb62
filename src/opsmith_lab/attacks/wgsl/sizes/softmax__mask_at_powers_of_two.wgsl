// problem: softmax
// wrong: a row whose length is a power of two above 1 is indexed by a mask that drops its last bit
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
    let mask = select(0xffffffffu, size.N - 2u, size.N > 1u && countOneBits(size.N) == 1u);
    var largest = x[start];
    var sum = 0.0;
    for (var n = 0u; n < size.N; n++) {
        largest = max(largest, x[start + n]);
    }
    for (var n = 0u; n < size.N; n++) {
        sum += exp(x[start + (n & mask)] - largest);
    }
    for (var n = 0u; n < size.N; n++) {
        y[start + n] = exp(x[start + n] - largest) / sum;
    }
}
