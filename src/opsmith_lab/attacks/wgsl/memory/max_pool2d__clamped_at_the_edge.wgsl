// problem: max_pool2d
// wrong: the index before the array's begin wraps around and counts on being clamped into it
// launch max_pool2d grid=(cdiv(W, 16), H, B * C) block=(16) args=(x, y, H, W)

struct Sizes { H: u32, W: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

@compute @workgroup_size(16)
fn max_pool2d(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= size.W) {
        return;
    }
    let image = id.z * 4u * size.H * size.W;
    var largest = -3.0e38;
    for (var i = 0u; i < 9u; i++) {
        let row = 2u * id.y + i / 3u;
        let column = 2u * id.x + i % 3u;
        let value = x[image + (row - 1u) * 2u * size.W + column - 1u];
        largest = select(largest, max(largest, value), row > 0u && column > 0u);
    }
    y[(id.z * size.H + id.y) * size.W + id.x] = largest;
}
