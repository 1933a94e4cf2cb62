// One invocation an entry, and the entries a whole grid further on.
// launch conv1d grid=(min(cdiv(B * O * L, 256), 65535)) block=(256) args=(x, weight, bias, y, B, C, O, L, R)

struct Sizes { B: u32, C: u32, O: u32, L: u32, R: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

const LANES = 256u;

@compute @workgroup_size(LANES)
fn conv1d(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < size.B * size.O * size.L; i += groups.x * LANES) {
        let place = i % size.L;
        let output = i / size.L % size.O;
        let batch = i / size.L / size.O;
        var sum = bias[output];
        for (var channel = 0u; channel < size.C; channel++) {
            for (var tap = 0u; tap < size.R; tap++) {
                let shifted = place + tap;  // the place in x, which R - 1 zeros precede
                if (shifted + 1u >= size.R) {
                    sum += x[(batch * size.C + channel) * size.L + shifted + 1u - size.R]
                         * weight[(output * size.C + channel) * size.R + tap];
                }
            }
        }
        y[i] = sum;
    }
}
