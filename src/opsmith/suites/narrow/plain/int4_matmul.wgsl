// An invocation an entry of y.
// launch int4_matmul grid=(cdiv(N, 8), cdiv(M, 8)) block=(8, 8, 1) args=(x, weight, scale, y, M, N, G)
enable f16;

struct Sizes { M: u32, N: u32, G: u32 }

@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read> weight: array<u32>;
@group(0) @binding(2) var<storage, read> scale: array<f16>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

@compute @workgroup_size(8, 8)
fn int4_matmul(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x;
    let m = place.y;
    if (m >= size.M || n >= size.N) {
        return;
    }
    var total = 0.0;
    for (var g = 0u; g < size.G; g++) {
        var sum = 0.0;
        for (var i = 0u; i < 16u; i++) {
            let bits = weight[(n * size.G + g) * 16u + i];
            let at = (m * size.G + g) * 32u + 2u * i;
            sum += f32(x[at]) * f32(i32(bits << 28u) >> 28u) + f32(x[at + 1u]) * f32(i32(bits << 24u) >> 28u);
        }
        total += sum * f32(scale[n * size.G + g]);
    }
    y[m * size.N + n] = total;
}
