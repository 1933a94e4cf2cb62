// One invocation an entry, and the entries a whole grid further on. The window's centre is always inside the image.
// launch max_pool2d grid=(min(cdiv(B * C * H * W, 256), 65535)) block=(256) args=(x, y, B, C, H, W)

struct Sizes { B: u32, C: u32, H: u32, W: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

const LANES = 256u;

@compute @workgroup_size(LANES)
fn max_pool2d(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let rows = i32(2u * size.H);
    let columns = i32(2u * size.W);
    for (var i = id.x; i < size.B * size.C * size.H * size.W; i += groups.x * LANES) {
        let middle = 2 * i32(i % size.W);
        let centre = 2 * i32(i / size.W % size.H);
        let image = i32(i / size.W / size.H) * rows * columns;
        var largest = x[image + centre * columns + middle];
        for (var row = max(centre - 1, 0); row <= min(centre + 1, rows - 1); row++) {
            for (var column = max(middle - 1, 0); column <= min(middle + 1, columns - 1); column++) {
                largest = max(largest, x[image + row * columns + column]);
            }
        }
        y[i] = largest;
    }
}
