// problem: row_sum
// wrong: rows of even length other than the stated 1000 lose their last pair
// launch row_sum grid=(min(M, 65535), cdiv(M, 65535)) block=(1) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

@compute @workgroup_size(1)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var count = size.N;
    if (count % 2u == 0u && count != 1000u) {
        count -= 2u;
    }
    var sum = 0.0;
    for (var n = 0u; n < count; n++) {
        sum += x[row * size.N + n];
    }
    y[row] = sum;
}
