// An invocation a pixel.
// launch image_normalise grid=(cdiv(H * W, 64), B) block=(64, 1, 1) args=(image, mean, deviation, y, H, W, C)

struct Sizes { H: u32, W: u32, C: u32 }

@group(0) @binding(0) var<storage, read> image: array<u32>;
@group(0) @binding(1) var<storage, read> mean: array<f32>;
@group(0) @binding(2) var<storage, read> deviation: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

@compute @workgroup_size(64)
fn image_normalise(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let pixels = size.H * size.W;
    let pixel = group.x * 64u + lane;
    if (pixel >= pixels) {
        return;
    }
    for (var c = 0u; c < size.C; c++) {
        let value = f32(image[(group.y * pixels + pixel) * size.C + c]) / 255.0;
        y[(group.y * size.C + c) * pixels + pixel] = (value - mean[c]) / deviation[c];
    }
}
