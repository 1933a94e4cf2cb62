// A workgroup a row: its largest magnitude, then its numbers. fp8 leaves as its code in a u32.
// launch fp8_quantise grid=(min(M, 65535), cdiv(M, 65535)) block=(64, 1, 1) args=(x, y, scale, M, N, least)

struct Sizes { M: u32, N: u32, least: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> scale: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

var<workgroup> parts: array<f32, 64>;

fn f32_to_fp8_e4m3(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let magnitude = min(bits & 0x7fffffffu, 0x43e00000u);
    let small = bitcast<u32>(bitcast<f32>(magnitude) + 16384.0) & 127u;
    let large = (magnitude - 0x3c000000u + 0x7ffffu + (magnitude >> 20u & 1u)) >> 20u;
    let code = select(large, small, magnitude < 0x3c800000u);
    return (bits >> 24u & 128u) | select(code, 127u, (bits & 0x7fffffffu) > 0x7f800000u);
}

@compute @workgroup_size(64)
fn fp8_quantise(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var largest = size.least;
    for (var n = lane; n < size.N; n += 64u) {
        largest = max(largest, abs(x[row * size.N + n]));
    }
    parts[lane] = largest;
    workgroupBarrier();
    for (var step = 32u; step > 0u; step >>= 1u) {
        if (lane < step) {
            parts[lane] = max(parts[lane], parts[lane + step]);
        }
        workgroupBarrier();
    }
    let factor = parts[0] / 448.0;
    if (lane == 0u) {
        scale[row] = factor;
    }
    for (var n = lane; n < size.N; n += 64u) {
        y[row * size.N + n] = f32_to_fp8_e4m3(x[row * size.N + n] / factor);
    }
}
