// problem: inclusive_scan
// right: Hillis and Steele's scan between two halves of one array, with a carry
// launch inclusive_scan grid=(min(M, 65535), cdiv(M, 65535)) block=(32) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

var<workgroup> halves: array<f32, 64>;

@compute @workgroup_size(32)
fn inclusive_scan(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var carry = 0.0;
    for (var start = 0u; start < size.N; start += 32u) {
        let n = start + lane;
        var own = 0.0;
        if (n < size.N) {
            own = x[row * size.N + n];
        }
        var now = 0u;
        halves[lane] = own;
        for (var offset = 1u; offset < 32u; offset *= 2u) {
            workgroupBarrier();
            var value = halves[now + lane];
            if (lane >= offset) {
                value += halves[now + lane - offset];
            }
            now = 32u - now;
            halves[now + lane] = value;
        }
        workgroupBarrier();
        if (n < size.N) {
            y[row * size.N + n] = carry + halves[now + lane];
        }
        carry += halves[now + 31u];
        workgroupBarrier();
    }
}
