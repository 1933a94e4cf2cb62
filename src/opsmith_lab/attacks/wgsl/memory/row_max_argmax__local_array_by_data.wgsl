// problem: row_max_argmax
// wrong: a local array of 8 is indexed by the remainder of 9
// launch row_max_argmax grid=(min(M, 65535), cdiv(M, 65535)) block=(1) args=(x, value, position, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> value: array<f32>;
@group(0) @binding(2) var<storage, read_write> position: array<i32>;
@group(0) @binding(3) var<uniform> size: Sizes;

@compute @workgroup_size(1)
fn row_max_argmax(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = group.y * groups.x + group.x;
    if (row >= size.M) {
        return;
    }
    var best: array<f32, 8>;
    var places: array<u32, 8>;
    for (var i = 0u; i < 8u; i++) {
        best[i] = -3.0e38;
    }
    for (var n = 0u; n < size.N; n++) {
        if (x[row * size.N + n] > best[n % 9u]) {
            best[n % 9u] = x[row * size.N + n];
            places[n % 9u] = n;
        }
    }
    var largest = best[0];
    var place = places[0];
    for (var i = 1u; i < 8u; i++) {
        if (best[i] > largest || (best[i] == largest && places[i] < place)) {
            largest = best[i];
            place = places[i];
        }
    }
    value[row] = largest;
    position[row] = i32(place);
}
