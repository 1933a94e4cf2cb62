// An invocation a sample.
// launch mu_law_decode grid=(min(cdiv(C * T, 64), 65535), cdiv(C * T, 64 * 65535)) block=(64, 1, 1) args=(codes, y, C, T)

struct Sizes { C: u32, T: u32 }

@group(0) @binding(0) var<storage, read> codes: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<i32>;
@group(0) @binding(2) var<uniform> size: Sizes;

@compute @workgroup_size(64)
fn mu_law_decode(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * 64u + lane;
    if (i < size.C * size.T) {
        let bits = 255 - i32(codes[i]);
        let magnitude = (((bits & 15) * 8 + 132) << u32(bits >> 4u & 7)) - 132;
        y[i] = select(magnitude, -magnitude, bits >= 128);
    }
}
