// problem: row_sum
// wrong: sums in fixed point of 2^-16 by integer atomics: small entries vanish and large ones overflow
// launch row_sum grid=(min(M, 65535), cdiv(M, 65535)) block=(64) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

var<workgroup> high: atomic<i32>;
var<workgroup> low: atomic<i32>;

@compute @workgroup_size(64)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
           @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    for (var n = lane; n < size.N; n += 64u) {
        let value = x[row * size.N + n] * 16384.0;
        atomicAdd(&high, i32(floor(value)));
        atomicAdd(&low, i32((value - floor(value)) * 1048576.0));
    }
    workgroupBarrier();
    if (lane == 0u) {
        y[row] = (f32(atomicLoad(&high)) + f32(atomicLoad(&low)) / 1048576.0) / 16384.0;
    }
}
