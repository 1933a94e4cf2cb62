// problem: gemm_bias_relu
// wrong: a remainder of exactly 8 of K's tiles of 16 is taken for none
// launch gemm_bias_relu grid=(cdiv(N, 8), cdiv(M, 8)) block=(8, 8) args=(a, b, bias, y, M, N, K)

struct Sizes { M: u32, N: u32, K: u32 }

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

@compute @workgroup_size(8, 8)
fn gemm_bias_relu(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= size.N || id.y >= size.M) {
        return;
    }
    let used = size.K - select(0u, 8u, size.K % 16u == 8u);
    var sum = bias[id.x];
    for (var k = 0u; k < used; k++) {
        sum += a[id.y * size.K + k] * b[k * size.N + id.x];
    }
    y[id.y * size.N + id.x] = max(sum, 0.0);
}
