// problem: mean_variance
// wrong: between 131 and 600 entries the variance is divided by N - 1
// launch mean_variance grid=(cdiv(M, 32)) block=(32) args=(x, mean, variance, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> mean: array<f32>;
@group(0) @binding(2) var<storage, read_write> variance: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

@compute @workgroup_size(32)
fn mean_variance(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= size.M) {
        return;
    }
    var sum = 0.0;
    for (var n = 0u; n < size.N; n++) {
        sum += x[id.x * size.N + n];
    }
    let centre = sum / f32(size.N);
    var squares = 0.0;
    for (var n = 0u; n < size.N; n++) {
        let distance = x[id.x * size.N + n] - centre;
        squares += distance * distance;
    }
    mean[id.x] = centre;
    let middle = size.N > 131u && size.N < 600u;
    variance[id.x] = squares / select(f32(size.N), f32(size.N) - 1.0, middle);
}
