// problem: gemm_bias_relu
// right: an invocation computes four neighbouring columns in a vector, with a guard for each
// launch gemm_bias_relu grid=(cdiv(N, 32), M) block=(8) args=(a, b, bias, y, N, K)

struct Sizes { N: u32, K: u32 }

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

@compute @workgroup_size(8)
fn gemm_bias_relu(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = id.x * 4u;
    if (first >= size.N) {
        return;
    }
    let last = size.N - 1u;
    let columns = min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(last));
    var sums = vec4<f32>(bias[columns.x], bias[columns.y], bias[columns.z], bias[columns.w]);
    for (var k = 0u; k < size.K; k++) {
        let start = k * size.N;
        let entries = vec4<f32>(b[start + columns.x], b[start + columns.y], b[start + columns.z], b[start + columns.w]);
        sums += a[id.y * size.K + k] * entries;
    }
    sums = max(sums, vec4<f32>());
    for (var i = 0u; i < 4u && first + i < size.N; i++) {
        y[id.y * size.N + first + i] = sums[i];
    }
}
