// problem: row_sum
// right: one invocation adds short rows, all add long ones; the branch is the same for all
// launch row_sum grid=(min(M, 65535), cdiv(M, 65535)) block=(64) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;

var<workgroup> parts: array<f32, 64>;

@compute @workgroup_size(64)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
           @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var sum = 0.0;
    if (size.N < 16u) {
        if (lane == 0u) {
            for (var n = 0u; n < size.N; n++) {
                sum += x[row * size.N + n];
            }
            y[row] = sum;
        }
    } else {
        for (var n = lane; n < size.N; n += 64u) {
            sum += x[row * size.N + n];
        }
        parts[lane] = sum;
        workgroupBarrier();
        if (lane == 0u) {
            sum = 0.0;
            for (var i = 0u; i < 64u; i++) {
                sum += parts[i];
            }
            y[row] = sum;
        }
    }
}
