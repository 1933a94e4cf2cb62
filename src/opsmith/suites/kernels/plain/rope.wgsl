enable f16;

// One invocation a pair of entries, and the pairs a whole grid further on.
// launch rope grid=(min(cdiv(T * H * D, 256), 65535)) block=(256) args=(x, cosine, sine, y, T, H, D)

struct Sizes { T: u32, H: u32, D: u32 }

@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read> cosine: array<f32>;
@group(0) @binding(2) var<storage, read> sine: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f16>;
@group(0) @binding(4) var<uniform> size: Sizes;

const LANES = 256u;

@compute @workgroup_size(LANES)
fn rope(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < size.T * size.H * size.D; i += groups.x * LANES) {
        let head = i / size.D;
        let place = head * 2u * size.D + i % size.D;
        let angle = head / size.H * size.D + i % size.D;
        let first = f32(x[place]);
        let second = f32(x[place + size.D]);
        y[place] = f16(first * cosine[angle] - second * sine[angle]);
        y[place + size.D] = f16(second * cosine[angle] + first * sine[angle]);
    }
}
