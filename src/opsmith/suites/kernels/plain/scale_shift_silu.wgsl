// One invocation an entry, and the entries a whole grid further on.
// launch scale_shift_silu grid=(min(cdiv(B * C * L, 256), 65535)) block=(256) args=(x, scale, shift, y, B, C, L)

struct Sizes { B: u32, C: u32, L: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> scale: array<f32>;
@group(0) @binding(2) var<storage, read> shift: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

const LANES = 256u;

@compute @workgroup_size(LANES)
fn scale_shift_silu(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < size.B * size.C * size.L; i += groups.x * LANES) {
        let channel = i / size.L;
        let z = x[i] * scale[channel] + shift[channel];
        // exp of a number below zero only: an overflow is not sure to be an infinity in WGSL
        let e = exp(-abs(z));
        y[i] = z * select(e, 1.0, z > 0.0) / (1.0 + e);
    }
}
