// problem: rope
// right: halves are computed in f32 and written as f16, one invocation a pair
// launch rope grid=(cdiv(H * D, 16), T) block=(16) args=(x, cosine, sine, y, H, D)
enable f16;

struct Sizes { H: u32, D: u32 }

@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read> cosine: array<f32>;
@group(0) @binding(2) var<storage, read> sine: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f16>;
@group(0) @binding(4) var<uniform> size: Sizes;

@compute @workgroup_size(16)
fn rope(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= size.H * size.D) {
        return;
    }
    let d = id.x % size.D;
    let first = (id.y * size.H + id.x / size.D) * 2u * size.D + d;
    let turn = vec2<f32>(cosine[id.y * size.D + d], sine[id.y * size.D + d]);
    let pair = vec2<f32>(f32(x[first]), f32(x[first + size.D]));
    y[first] = f16(dot(pair, vec2<f32>(turn.x, -turn.y)));
    y[first + size.D] = f16(dot(pair, turn.yx));
}
