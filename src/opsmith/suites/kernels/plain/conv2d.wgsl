// One invocation an entry, and the entries a whole grid further on.
// launch conv2d grid=(min(cdiv(B * O * H * W, 256), 65535)) block=(256) args=(x, weight, bias, y, B, C, O, H, W)

struct Sizes { B: u32, C: u32, O: u32, H: u32, W: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> size: Sizes;

const LANES = 256u;

@compute @workgroup_size(LANES)
fn conv2d(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let rows = i32(2u * size.H);
    let columns = i32(2u * size.W);
    for (var i = id.x; i < size.B * size.O * size.H * size.W; i += groups.x * LANES) {
        let left = 2 * i32(i % size.W) - 1;
        let top = 2 * i32(i / size.W % size.H) - 1;
        let output = i / size.W / size.H % size.O;
        let batch = i / size.W / size.H / size.O;
        var sum = bias[output];
        for (var channel = 0u; channel < size.C; channel++) {
            let image = i32(batch * size.C + channel) * rows * columns;
            let window = (output * size.C + channel) * 9u;
            for (var tap = 0u; tap < 9u; tap++) {
                let row = top + i32(tap / 3u);
                let column = left + i32(tap % 3u);
                if (row >= 0 && row < rows && column >= 0 && column < columns) {
                    sum += x[image + row * columns + column] * weight[window + tap];
                }
            }
        }
        y[i] = sum;
    }
}
