// One invocation an entry, and the entries a whole grid further on. WGSL has no erf.
// launch bias_gelu_residual grid=(min(cdiv(M * N, 256), 65535)) block=(256) args=(x, bias, residual, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;
@group(0) @binding(2) var<storage, read> residual: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

const LANES = 256u;

// 1 - erf(z) for z >= 0, within 1.2e-7 of itself: the Chebyshev fit of Numerical Recipes (erfcc).
fn compute_erfc(z: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.5 * z);
    var p = 0.17087277;
    p = p * t - 0.82215223;
    p = p * t + 1.48851587;
    p = p * t - 1.13520398;
    p = p * t + 0.27886807;
    p = p * t - 0.18628806;
    p = p * t + 0.09678418;
    p = p * t + 0.37409196;
    p = p * t + 1.00002368;
    p = p * t - 1.26551223;
    return t * exp(p - z * z);
}

fn compute_gelu(z: f32) -> f32 {
    let tail = 0.5 * compute_erfc(abs(z) * 0.70710678);
    return z * select(tail, 1.0 - tail, z > 0.0);
}

@compute @workgroup_size(LANES)
fn bias_gelu_residual(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < size.M * size.N; i += groups.x * LANES) {
        y[i] = compute_gelu(x[i] + bias[i % size.N]) + residual[i];
    }
}
