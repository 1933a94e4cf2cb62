// problem: row_sum
// wrong: the old sum is taken out by an exchange and put back with one's own: two may hold it at once
// launch row_sum grid=(min(M, 65535), cdiv(M, 65535)) block=(64) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

var<workgroup> total: atomic<u32>;

@compute @workgroup_size(64)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
           @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var sum = 0.0;
    for (var n = lane; n < size.N; n += 64u) {
        sum += x[row * size.N + n];
    }
    for (var turn = 0u; turn < 64u; turn++) {
        if (turn == lane) {
            let taken = bitcast<f32>(atomicExchange(&total, 0u));
            atomicStore(&total, bitcast<u32>(taken + sum));
        }
    }
    workgroupBarrier();
    if (lane == 0u) {
        y[row] = bitcast<f32>(atomicLoad(&total));
    }
}
