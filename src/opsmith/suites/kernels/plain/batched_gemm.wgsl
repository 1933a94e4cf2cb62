enable f16;

// One workgroup a tile of 16 x 16 entries of one batch; numbers are fp16, their products and sums fp32.
// launch batched_gemm grid=(cdiv(N, 16), cdiv(M, 16), B) block=(16, 16) args=(a, b, y, B, M, N, K)

struct Sizes { B: u32, M: u32, N: u32, K: u32 }

@group(0) @binding(0) var<storage, read> a: array<f16>;
@group(0) @binding(1) var<storage, read> b: array<f16>;
@group(0) @binding(2) var<storage, read_write> y: array<f16>;
@group(0) @binding(3) var<uniform> size: Sizes;

const TILE = 16u;
var<workgroup> tile_a: array<array<f32, TILE>, TILE>;
var<workgroup> tile_b: array<array<f32, TILE>, TILE>;

@compute @workgroup_size(TILE, TILE)
fn batched_gemm(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let row = group.y * TILE + local.y;
    let column = group.x * TILE + local.x;
    let start_a = group.z * size.M * size.K;
    let start_b = group.z * size.K * size.N;
    var sum = 0.0;
    for (var start = 0u; start < size.K; start += TILE) {
        tile_a[local.y][local.x] = 0.0;
        tile_b[local.y][local.x] = 0.0;
        if (row < size.M && start + local.x < size.K) {
            tile_a[local.y][local.x] = f32(a[start_a + row * size.K + start + local.x]);
        }
        if (start + local.y < size.K && column < size.N) {
            tile_b[local.y][local.x] = f32(b[start_b + (start + local.y) * size.N + column]);
        }
        workgroupBarrier();
        for (var k = 0u; k < TILE; k++) {
            sum += tile_a[local.y][k] * tile_b[k][local.x];
        }
        workgroupBarrier();
    }
    if (row < size.M && column < size.N) {
        y[(group.z * size.M + row) * size.N + column] = f16(sum);
    }
}
