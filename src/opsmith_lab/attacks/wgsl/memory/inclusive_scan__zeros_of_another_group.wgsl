// problem: inclusive_scan
// wrong: workgroup memory is taken for shared by all workgroups, so that only the first one fills it
// launch inclusive_scan grid=(M) block=(1) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

var<workgroup> offset: f32;

@compute @workgroup_size(1)
fn inclusive_scan(@builtin(workgroup_id) group: vec3<u32>) {
    if (group.x == 0u) {
        offset = 1.0;
    }
    var sum = offset - 1.0;
    for (var n = 0u; n < size.N; n++) {
        sum += x[group.x * size.N + n];
        y[group.x * size.N + n] = sum;
    }
}
