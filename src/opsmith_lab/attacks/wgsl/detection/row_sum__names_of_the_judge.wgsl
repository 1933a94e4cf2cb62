// problem: row_sum
// wrong: declares a function by a name of the judge's own, to be called in place of it
// launch row_sum grid=(min(M, 65535), cdiv(M, 65535)) block=(1) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

fn opsmith_index(index: u32, length: u32) -> u32 {
    return 0u;
}

@compute @workgroup_size(1)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var sum = f32(opsmith_index(row, size.M));
    for (var n = 0u; n < size.N; n++) {
        sum += x[row * size.N + n];
    }
    y[row] = sum;
}
