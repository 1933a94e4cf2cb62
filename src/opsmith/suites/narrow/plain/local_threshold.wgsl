// An invocation a pixel.
// launch local_threshold grid=(cdiv(W, 8), cdiv(H, 8), B) block=(8, 8, 1) args=(image, y, H, W, offset)

struct Sizes { H: u32, W: u32, offset: i32 }

@group(0) @binding(0) var<storage, read> image: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> size: Sizes;

@compute @workgroup_size(8, 8)
fn local_threshold(@builtin(global_invocation_id) place: vec3<u32>) {
    let column = place.x;
    let row = place.y;
    if (row >= size.H || column >= size.W) {
        return;
    }
    let start = place.z * size.H * size.W;
    var sum = 0u;
    for (var i = max(row, 1u) - 1u; i <= min(row + 1u, size.H - 1u); i++) {
        for (var j = max(column, 1u) - 1u; j <= min(column + 1u, size.W - 1u); j++) {
            sum += image[start + i * size.W + j];
        }
    }
    let at = start + row * size.W + column;
    y[at] = select(0u, 255u, 9 * (i32(image[at]) + size.offset) > i32(sum));
}
