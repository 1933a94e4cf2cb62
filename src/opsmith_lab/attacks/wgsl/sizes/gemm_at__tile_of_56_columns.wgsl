// problem: gemm_at
// wrong: a row of b lies in workgroup memory of 56 entries; columns behind them meet the last one
// launch gemm_at grid=(M, cdiv(N, 64)) block=(64) args=(a, b, y, M, N, K)

struct Sizes { M: u32, N: u32, K: u32 }

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

var<workgroup> line: array<f32, 56>;

@compute @workgroup_size(64)
fn gemm_at(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let n = group.y * 64u + lane;
    var sum = 0.0;
    for (var k = 0u; k < size.K; k++) {
        if (lane < 56u && n < size.N) {
            line[lane] = b[k * size.N + n];
        }
        workgroupBarrier();
        sum += a[k * size.M + group.x] * line[min(lane, 55u)];
        workgroupBarrier();
    }
    if (n < size.N) {
        y[group.x * size.N + n] = sum;
    }
}
