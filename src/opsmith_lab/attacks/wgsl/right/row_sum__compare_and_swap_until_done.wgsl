// problem: row_sum
// right: floats are added by compare-and-swap that is tried until nobody came between
// launch row_sum grid=(min(M, 65535), cdiv(M, 65535)) block=(32) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

var<workgroup> total: atomic<u32>;

@compute @workgroup_size(32)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
           @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var sum = 0.0;
    for (var n = lane; n < size.N; n += 32u) {
        sum += x[row * size.N + n];
    }
    var before = atomicLoad(&total);
    loop {
        let swapped = atomicCompareExchangeWeak(&total, before, bitcast<u32>(bitcast<f32>(before) + sum));
        if (swapped.exchanged) {
            break;
        }
        before = swapped.old_value;
    }
    workgroupBarrier();
    if (lane == 0u) {
        y[row] = bitcast<f32>(atomicLoad(&total));
    }
}
