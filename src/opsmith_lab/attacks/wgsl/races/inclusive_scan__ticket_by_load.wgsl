// problem: inclusive_scan
// wrong: lanes take their places by an atomic load and then atomicMax: two may get one place
// launch inclusive_scan grid=(cdiv(M, 32)) block=(32) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

var<workgroup> next: atomic<u32>;

@compute @workgroup_size(32)
fn inclusive_scan(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    var place = 0u;
    for (var turn = 0u; turn < 32u; turn++) {
        if (turn == lane) {
            place = atomicLoad(&next);
            atomicMax(&next, place + 1u);
        }
    }
    let row = group.x * 32u + place;
    if (row >= size.M) {
        return;
    }
    var sum = 0.0;
    for (var n = 0u; n < size.N; n++) {
        sum += x[row * size.N + n];
        y[row * size.N + n] = sum;
    }
}
