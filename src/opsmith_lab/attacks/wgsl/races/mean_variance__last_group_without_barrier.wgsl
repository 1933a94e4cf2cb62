// problem: mean_variance
// wrong: the last workgroup of a row adds what others wrote as ordinary entries, ordered by nothing but a counter
// workspace partial: fp32 [M, 4]
// workspace arrived: int32 [M]
// launch clear grid=(cdiv(M, 32)) block=(32) args=(arrived, M)
// launch mean_variance grid=(4, M) block=(1) args=(x, partial, arrived, mean, variance, N)

struct Rows { M: u32 }
struct Sizes { N: u32 }

@group(0) @binding(0) var<storage, read_write> cleared: array<i32>;
@group(0) @binding(1) var<uniform> rows: Rows;

@compute @workgroup_size(32)
fn clear(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < rows.M) {
        cleared[id.x] = 0;
    }
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> partial: array<f32>;
@group(0) @binding(2) var<storage, read_write> arrived: array<atomic<i32>>;
@group(0) @binding(3) var<storage, read_write> mean: array<f32>;
@group(0) @binding(4) var<storage, read_write> variance: array<f32>;
@group(0) @binding(5) var<uniform> size: Sizes;

@compute @workgroup_size(1)
fn mean_variance(@builtin(workgroup_id) group: vec3<u32>) {
    var sum = 0.0;
    for (var n = group.x; n < size.N; n += 4u) {
        sum += x[group.y * size.N + n];
    }
    partial[group.y * 4u + group.x] = sum;
    if (atomicAdd(&arrived[group.y], 1) == 3) {
        var centre = 0.0;
        for (var part = 0u; part < 4u; part++) {
            centre += partial[group.y * 4u + part];
        }
        centre /= f32(size.N);
        var squares = 0.0;
        for (var n = 0u; n < size.N; n++) {
            squares += (x[group.y * size.N + n] - centre) * (x[group.y * size.N + n] - centre);
        }
        mean[group.y] = centre;
        variance[group.y] = squares / f32(size.N);
    }
}
