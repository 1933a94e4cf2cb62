// problem: scale_shift_silu
// right: a grid of three axes, and the sigmoid by the smaller of two exponentials
// launch scale_shift_silu grid=(cdiv(L, 16), C, B) block=(16) args=(x, scale, shift, y, C, L)

struct Sizes { C: u32, L: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> scale: array<f32>;
@group(0) @binding(2) var<storage, read> shift: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

@compute @workgroup_size(16)
fn scale_shift_silu(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= size.L) {
        return;
    }
    let channel = id.z * size.C + id.y;
    let z = x[channel * size.L + id.x] * scale[channel] + shift[channel];
    let small = exp(-abs(z));
    y[channel * size.L + id.x] = z * select(1.0, small, z < 0.0) / (1.0 + small);
}
