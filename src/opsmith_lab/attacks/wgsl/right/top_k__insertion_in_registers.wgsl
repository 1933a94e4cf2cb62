// problem: top_k
// right: eight values in a local array, pushed along by each larger entry
// launch top_k grid=(cdiv(M, 16)) block=(16) args=(x, value, position, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> value: array<f32>;
@group(0) @binding(2) var<storage, read_write> position: array<i32>;
@group(0) @binding(3) var<uniform> size: Sizes;

@compute @workgroup_size(16)
fn top_k(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= size.M) {
        return;
    }
    let start = id.x * 8u * size.N;
    var best: array<f32, 8>;
    var places: array<u32, 8>;
    var held = 0u;
    for (var n = 0u; n < 8u * size.N; n++) {
        let own = x[start + n];
        if (held == 8u && own <= best[7]) {
            continue;
        }
        var rank = min(held, 7u);
        while (rank > 0u) {
            if (best[rank - 1u] >= own) {
                break;
            }
            best[rank] = best[rank - 1u];
            places[rank] = places[rank - 1u];
            rank--;
        }
        best[rank] = own;
        places[rank] = n;
        held = min(held + 1u, 8u);
    }
    for (var rank = 0u; rank < 8u; rank++) {
        value[id.x * 8u + rank] = best[rank];
        position[id.x * 8u + rank] = i32(places[rank]);
    }
}
