// problem: max_pool2d
// right: indices behind the edge are moved onto the centre, which is in the window already
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
    let centre = vec2<u32>(2u * id.x, 2u * id.y);
    let first = select(centre - vec2<u32>(1u), centre, centre == vec2<u32>(0u));
    var largest = x[(id.z * 2u * size.H + centre.y) * 2u * size.W + centre.x];
    for (var row = first.y; row <= centre.y + 1u; row++) {
        for (var column = first.x; column <= centre.x + 1u; column++) {
            largest = max(largest, x[(id.z * 2u * size.H + row) * 2u * size.W + column]);
        }
    }
    y[(id.z * size.H + id.y) * size.W + id.x] = largest;
}
