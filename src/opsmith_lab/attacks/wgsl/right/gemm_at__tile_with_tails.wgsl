// problem: gemm_at
// right: tiles of 8 by 8 with zeros behind the edges, every barrier reached by all
// launch gemm_at grid=(cdiv(N, 8), cdiv(M, 8)) block=(8, 8) args=(a, b, y, M, N, K)

struct Sizes { M: u32, N: u32, K: u32 }

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

var<workgroup> left: array<array<f32, 8>, 8>;
var<workgroup> right: array<array<f32, 8>, 8>;

@compute @workgroup_size(8, 8)
fn gemm_at(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) lane: vec3<u32>) {
    let m = group.y * 8u;
    let n = group.x * 8u;
    var sum = 0.0;
    for (var k = 0u; k < size.K; k += 8u) {
        left[lane.y][lane.x] = 0.0;
        right[lane.y][lane.x] = 0.0;
        if (k + lane.y < size.K) {
            if (m + lane.x < size.M) {
                left[lane.y][lane.x] = a[(k + lane.y) * size.M + m + lane.x];
            }
            if (n + lane.x < size.N) {
                right[lane.y][lane.x] = b[(k + lane.y) * size.N + n + lane.x];
            }
        }
        workgroupBarrier();
        for (var i = 0u; i < 8u; i++) {
            sum += left[i][lane.y] * right[i][lane.x];
        }
        workgroupBarrier();
    }
    if (m + lane.y < size.M && n + lane.x < size.N) {
        y[(m + lane.y) * size.N + n + lane.x] = sum;
    }
}
