// problem: row_sum
// wrong: sums are added to what the workspace held: nobody has set it to zero
// workspace total: fp32 [M]
// launch row_sum grid=(min(M, 65535), cdiv(M, 65535)) block=(1) args=(x, total, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> total: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

@compute @workgroup_size(1)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    for (var n = 0u; n < size.N; n++) {
        total[row] += x[row * size.N + n];
    }
    y[row] = total[row];
}
