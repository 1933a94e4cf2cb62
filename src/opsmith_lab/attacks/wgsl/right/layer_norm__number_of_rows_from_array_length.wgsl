// problem: layer_norm
// right: the number of columns is read from arrayLength of the weight
// launch layer_norm grid=(min(M, 65535), cdiv(M, 65535)) block=(1) args=(x, weight, bias, y, M, eps)

struct Numbers { M: u32, eps: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> numbers: Numbers;

@compute @workgroup_size(1)
fn layer_norm(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = group.y * groups.x + group.x;
    if (row >= numbers.M) {
        return;
    }
    let columns = arrayLength(&weight);
    let start = row * columns;
    var mean = 0.0;
    for (var n = 0u; n < columns; n++) {
        mean += x[start + n];
    }
    mean /= f32(columns);
    var squares = 0.0;
    for (var n = 0u; n < columns; n++) {
        squares += (x[start + n] - mean) * (x[start + n] - mean);
    }
    let scale = inverseSqrt(squares / f32(columns) + numbers.eps);
    for (var n = 0u; n < columns; n++) {
        y[start + n] = fma((x[start + n] - mean) * scale, weight[n], bias[n]);
    }
}
