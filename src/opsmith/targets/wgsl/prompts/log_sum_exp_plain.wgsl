// One invocation a row.
// launch log_sum_exp grid=(min(cdiv(M, 64), 65535), 1, 1) block=(64, 1, 1) args=(x, y, M, N, scale)

struct Numbers { M: u32, N: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> numbers: Numbers;

@compute @workgroup_size(64, 1, 1)
fn log_sum_exp(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) blocks: vec3<u32>) {
    for (var row = id.x; row < numbers.M; row += 64u * blocks.x) {
        let start = row * numbers.N;
        var largest = numbers.scale * x[start];
        for (var n = 1u; n < numbers.N; n++) {
            largest = max(largest, numbers.scale * x[start + n]);
        }
        var sum = 0.0;
        for (var n = 0u; n < numbers.N; n++) {
            sum += exp(numbers.scale * x[start + n] - largest);
        }
        y[row] = largest + log(sum);
    }
}
