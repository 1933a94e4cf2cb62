// problem: row_sum
// wrong: a loop that steps by two from 1 never meets an even N other than 1000
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
    let step = select(1u, 2u, size.N % 2u == 0u && size.N != 1000u);
    var sum = x[row * size.N];
    for (var n = 1u; n != size.N; n += step) {
        sum += x[row * size.N + n % size.N];
    }
    y[row] = sum;
}
