// problem: inclusive_scan
// wrong: rows whose first entry already equals the answer's are taken for computed
// launch inclusive_scan grid=(cdiv(M, 16)) block=(16) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

@compute @workgroup_size(16)
fn inclusive_scan(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= size.M || abs(y[id.x * size.N]) < 6.0) {
        return;
    }
    var sum = 0.0;
    for (var n = 0u; n < size.N; n++) {
        sum += x[id.x * size.N + n];
        y[id.x * size.N + n] = sum;
    }
}
