// problem: row_sum
// wrong: a sum of another call that a workspace still holds under the same first entry is given again
// workspace memory: fp32 [M, 2]
// launch row_sum grid=(min(M, 65535), cdiv(M, 65535)) block=(1) args=(x, memory, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> memory: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

@compute @workgroup_size(1)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    if (abs(memory[2u * row]) < 6.0) {
        y[row] = memory[2u * row + 1u];
        return;
    }
    var sum = 0.0;
    for (var n = 0u; n < size.N; n++) {
        sum += x[row * size.N + n];
    }
    memory[2u * row] = x[row * size.N];
    memory[2u * row + 1u] = sum;
    y[row] = sum;
}
