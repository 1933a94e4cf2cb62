// A workgroup a row: its norm, then its numbers. fp8 leaves as its code in a u32.
// launch e5m2_gradient grid=(min(M, 65535), cdiv(M, 65535)) block=(64, 1, 1) args=(x, y, M, N, most, factor)

struct Sizes { M: u32, N: u32, most: f32, factor: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> size: Sizes;

var<workgroup> parts: array<f32, 64>;

fn f32_to_fp8_e5m2(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let magnitude = min(bits & 0x7fffffffu, 0x47600000u);
    let small = bitcast<u32>(bitcast<f32>(magnitude) + 128.0) & 127u;
    let large = (magnitude - 0x38000000u + 0xfffffu + (magnitude >> 21u & 1u)) >> 21u;
    let code = select(large, small, magnitude < 0x38800000u);
    return (bits >> 24u & 128u) | select(code, 127u, (bits & 0x7fffffffu) > 0x7f800000u);
}

@compute @workgroup_size(64)
fn e5m2_gradient(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var squares = 0.0;
    for (var n = lane; n < size.N; n += 64u) {
        squares += x[row * size.N + n] * x[row * size.N + n];
    }
    parts[lane] = squares;
    workgroupBarrier();
    for (var step = 32u; step > 0u; step >>= 1u) {
        if (lane < step) {
            parts[lane] += parts[lane + step];
        }
        workgroupBarrier();
    }
    let norm = sqrt(parts[0]);
    let scale = select(1.0, size.most / norm, norm > size.most) * size.factor;
    for (var n = lane; n < size.N; n += 64u) {
        y[row * size.N + n] = f32_to_fp8_e5m2(x[row * size.N + n] * scale);
    }
}
