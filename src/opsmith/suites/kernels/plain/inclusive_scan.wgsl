// One workgroup a row, 256 entries at a time: sums within them by doubling steps, and the sum of all before them.
// launch inclusive_scan grid=(min(M, 65535), cdiv(M, 65535)) block=(256) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

const LANES = 256u;
var<workgroup> sums: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn inclusive_scan(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var carry = 0.0;
    for (var start = 0u; start < size.N; start += LANES) {
        let column = start + lane;
        var sum = 0.0;
        if (column < size.N) {
            sum = x[row * size.N + column];
        }
        sums[lane] = sum;
        for (var distance = 1u; distance < LANES; distance *= 2u) {
            workgroupBarrier();
            var left = 0.0;
            if (lane >= distance) {
                left = sums[lane - distance];
            }
            workgroupBarrier();
            sums[lane] += left;
        }
        if (column < size.N) {
            y[row * size.N + column] = carry + sums[lane];
        }
        workgroupBarrier();
        carry += sums[LANES - 1u];
        workgroupBarrier();
    }
}
