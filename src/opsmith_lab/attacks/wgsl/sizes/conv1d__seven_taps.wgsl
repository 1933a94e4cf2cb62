// problem: conv1d
// wrong: at most seven taps of the filter are used
// launch conv1d grid=(cdiv(L, 32), O, B) block=(32) args=(x, weight, bias, y, C, O, L, R)

struct Sizes { C: u32, O: u32, L: u32, R: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

@compute @workgroup_size(32)
fn conv1d(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= size.L) {
        return;
    }
    var sum = bias[id.y];
    for (var c = 0u; c < size.C; c++) {
        for (var tap = 0u; tap < min(size.R, 7u); tap++) {
            let place = id.x + tap;
            if (place + 1u >= size.R) {
                sum += weight[(id.y * size.C + c) * size.R + tap] * x[(id.z * size.C + c) * size.L + place + 1u - size.R];
            }
        }
    }
    y[(id.z * size.O + id.y) * size.L + id.x] = sum;
}
