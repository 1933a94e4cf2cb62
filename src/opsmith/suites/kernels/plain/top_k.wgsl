// One invocation a row, and the rows a whole grid further on: it keeps the eight largest entries so far, in order.
// launch top_k grid=(min(cdiv(M, 64), 65535)) block=(64) args=(x, value, position, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> value: array<f32>;
@group(0) @binding(2) var<storage, read_write> position: array<i32>;
@group(0) @binding(3) var<uniform> size: Sizes;

const LANES = 64u;
const COUNT = 8u;

@compute @workgroup_size(LANES)
fn top_k(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let columns = 8u * size.N;
    for (var row = id.x; row < size.M; row += groups.x * LANES) {
        var values: array<f32, COUNT>;
        var positions: array<u32, COUNT>;
        var count = 0u;
        for (var column = 0u; column < columns; column++) {
            let next = x[row * columns + column];
            if (count == COUNT && next <= values[COUNT - 1u]) {
                continue;
            }
            var rank = min(count, COUNT - 1u);
            count = min(count + 1u, COUNT);
            while (rank > 0u && values[rank - 1u] < next) {
                values[rank] = values[rank - 1u];
                positions[rank] = positions[rank - 1u];
                rank--;
            }
            values[rank] = next;
            positions[rank] = column;
        }
        for (var rank = 0u; rank < COUNT; rank++) {
            value[row * COUNT + rank] = values[rank];
            position[row * COUNT + rank] = i32(positions[rank]);
        }
    }
}
