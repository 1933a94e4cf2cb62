// problem: row_max_argmax
// wrong: positions are packed into nine bits and wrap at 512
// launch row_max_argmax grid=(min(M, 65535), cdiv(M, 65535)) block=(1) args=(x, value, position, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> value: array<f32>;
@group(0) @binding(2) var<storage, read_write> position: array<i32>;
@group(0) @binding(3) var<uniform> size: Sizes;

@compute @workgroup_size(1)
fn row_max_argmax(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var packed = 0u;
    for (var n = 1u; n < size.N; n++) {
        if (x[row * size.N + n] > x[row * size.N + extractBits(packed, 0u, 9u)]) {
            packed = insertBits(packed, n, 0u, 9u);
        }
    }
    value[row] = x[row * size.N + packed];
    position[row] = i32(packed);
}
