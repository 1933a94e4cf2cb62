// An invocation a byte: both of its numbers.
// launch int4_dequantise grid=(min(cdiv(M * G * 16, 64), 65535), cdiv(M * G * 16, 64 * 65535)) block=(64, 1, 1) args=(weight, scale, y, M, G)
enable f16;

struct Sizes { M: u32, G: u32 }

@group(0) @binding(0) var<storage, read> weight: array<u32>;
@group(0) @binding(1) var<storage, read> scale: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f16>;
@group(0) @binding(3) var<uniform> size: Sizes;

@compute @workgroup_size(64)
fn int4_dequantise(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                   @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * 64u + lane;
    if (i < size.M * size.G * 16u) {
        let bits = weight[i];
        let factor = scale[i / 16u];
        y[2u * i] = f16(f32(i32(bits << 28u) >> 28u) * factor);
        y[2u * i + 1u] = f16(f32(i32(bits << 24u) >> 28u) * factor);
    }
}
