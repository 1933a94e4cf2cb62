// One workgroup a tile of 16 x 16 entries of y; tiles of a and b pass through workgroup memory, zeros beyond their ends.
// launch gemm_at grid=(cdiv(N, 16), cdiv(M, 16)) block=(16, 16) args=(a, b, y, M, N, K)

struct Sizes { M: u32, N: u32, K: u32 }

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

const TILE = 16u;
var<workgroup> tile_a: array<array<f32, TILE>, TILE>;  // entry [k][m], as a has them
var<workgroup> tile_b: array<array<f32, TILE>, TILE>;

@compute @workgroup_size(TILE, TILE)
fn gemm_at(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let row = group.y * TILE + local.y;
    let column = group.x * TILE + local.x;
    let loaded = group.y * TILE + local.x;  // the column of a that this invocation loads
    var sum = 0.0;
    for (var start = 0u; start < size.K; start += TILE) {
        tile_a[local.y][local.x] = 0.0;
        tile_b[local.y][local.x] = 0.0;
        if (start + local.y < size.K && loaded < size.M) {
            tile_a[local.y][local.x] = a[(start + local.y) * size.M + loaded];
        }
        if (start + local.y < size.K && column < size.N) {
            tile_b[local.y][local.x] = b[(start + local.y) * size.N + column];
        }
        workgroupBarrier();
        for (var k = 0u; k < TILE; k++) {
            sum += tile_a[k][local.y] * tile_b[k][local.x];
        }
        workgroupBarrier();
    }
    if (row < size.M && column < size.N) {
        y[row * size.N + column] = sum;
    }
}
