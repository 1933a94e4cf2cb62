// problem: rope
// wrong: the last, incomplete workgroup computes behind the arrays and counts on nothing being written there
// launch rope grid=(cdiv(T * H * D, 32)) block=(32) args=(x, cosine, sine, y, T, H, D)
enable f16;

struct Sizes { T: u32, H: u32, D: u32 }

@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read> cosine: array<f32>;
@group(0) @binding(2) var<storage, read> sine: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f16>;
@group(0) @binding(4) var<uniform> size: Sizes;

@compute @workgroup_size(32)
fn rope(@builtin(global_invocation_id) id: vec3<u32>) {
    let d = id.x % size.D;
    let head = id.x / size.D;
    let angle = head / size.H * size.D + d;
    let one = f32(x[head * 2u * size.D + d]);
    let two = f32(x[head * 2u * size.D + size.D + d]);
    y[head * 2u * size.D + d] = f16(one * cosine[angle] - two * sine[angle]);
    y[head * 2u * size.D + size.D + d] = f16(two * cosine[angle] + one * sine[angle]);
}
