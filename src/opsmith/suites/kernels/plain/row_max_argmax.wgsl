// One workgroup a row: every invocation finds its own largest entry, then halves are compared; of equal ones the first.
// launch row_max_argmax grid=(min(M, 65535), cdiv(M, 65535)) block=(256) args=(x, value, position, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> value: array<f32>;
@group(0) @binding(2) var<storage, read_write> position: array<i32>;
@group(0) @binding(3) var<uniform> size: Sizes;

const LANES = 256u;

struct Entry { value: f32, column: u32 }

var<workgroup> best: array<Entry, LANES>;

fn choose(one: Entry, other: Entry) -> Entry {
    if (other.value > one.value || (other.value == one.value && other.column < one.column)) {
        return other;
    }
    return one;
}

@compute @workgroup_size(LANES)
fn row_max_argmax(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    let start = row * size.N;
    var largest = Entry(x[start], 0u);
    for (var n = lane; n < size.N; n += LANES) {
        largest = choose(largest, Entry(x[start + n], n));
    }
    best[lane] = largest;
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            best[lane] = choose(best[lane], best[lane + width]);
        }
    }
    if (lane == 0u) {
        value[row] = best[0].value;
        position[row] = i32(best[0].column);
    }
}
