// problem: row_max_argmax
// right: two atomics: the largest key first, behind a barrier the smallest position that has it
// launch row_max_argmax grid=(min(M, 65535), cdiv(M, 65535)) block=(32) args=(x, value, position, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> value: array<f32>;
@group(0) @binding(2) var<storage, read_write> position: array<i32>;
@group(0) @binding(3) var<uniform> size: Sizes;

var<workgroup> largest: atomic<u32>;
var<workgroup> place: atomic<u32>;

fn order(number: f32) -> u32 {
    let bits = bitcast<u32>(select(number, 0.0, number == 0.0));  // of two zeros the first, whatever their signs
    return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}

@compute @workgroup_size(32)
fn row_max_argmax(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    let start = row * size.N;
    if (lane == 0u) {
        atomicStore(&place, 0xffffffffu);
    }
    for (var n = lane; n < size.N; n += 32u) {
        atomicMax(&largest, order(x[start + n]));
    }
    workgroupBarrier();
    for (var n = lane; n < size.N; n += 32u) {
        if (order(x[start + n]) == atomicLoad(&largest)) {
            atomicMin(&place, n);
        }
    }
    workgroupBarrier();
    if (lane == 0u) {
        let n = atomicLoad(&place);
        value[row] = x[start + n];
        position[row] = i32(n);
    }
}
