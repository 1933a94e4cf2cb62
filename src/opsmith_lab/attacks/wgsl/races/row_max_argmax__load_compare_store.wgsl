// problem: row_max_argmax
// wrong: the best position is compared by an atomic load and then stored
// launch row_max_argmax grid=(min(M, 65535), cdiv(M, 65535)) block=(32) args=(x, value, position, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> value: array<f32>;
@group(0) @binding(2) var<storage, read_write> position: array<i32>;
@group(0) @binding(3) var<uniform> size: Sizes;

var<workgroup> best: atomic<u32>;

@compute @workgroup_size(32)
fn row_max_argmax(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    let start = row * size.N;
    for (var n = lane; n < size.N; n += 32u) {
        let now = atomicLoad(&best);
        let own = x[start + n];
        let other = x[start + now];
        if (own > other || (own == other && n < now)) {
            atomicStore(&best, n);
        }
    }
    workgroupBarrier();
    if (lane == 0u) {
        let n = atomicLoad(&best);
        value[row] = x[start + n];
        position[row] = i32(n);
    }
}
