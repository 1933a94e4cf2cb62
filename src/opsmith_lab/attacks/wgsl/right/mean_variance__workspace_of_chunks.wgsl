// problem: mean_variance
// right: chunks of a row in one launch, merged by the next; chunks may be incomplete
// workspace parts: fp32 [M, cdiv(N, 64), 2]
// launch reduce_chunks grid=(cdiv(N, 64), M) block=(1) args=(x, parts, N)
// launch merge_chunks grid=(cdiv(M, 32)) block=(32) args=(parts, mean, variance, M, N)

struct Length { N: u32 }
struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> parts: array<vec2<f32>>;
@group(0) @binding(2) var<uniform> length: Length;

@compute @workgroup_size(1)
fn reduce_chunks(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let begin = group.x * 64u;
    let end = min(begin + 64u, length.N);
    var sum = 0.0;
    for (var n = begin; n < end; n++) {
        sum += x[group.y * length.N + n];
    }
    let centre = sum / f32(end - begin);
    var squares = 0.0;
    for (var n = begin; n < end; n++) {
        let distance = x[group.y * length.N + n] - centre;
        squares += distance * distance;
    }
    parts[group.y * groups.x + group.x] = vec2<f32>(centre, squares);
}

@group(0) @binding(0) var<storage, read> chunks: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read_write> mean: array<f32>;
@group(0) @binding(2) var<storage, read_write> variance: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

@compute @workgroup_size(32)
fn merge_chunks(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= size.M) {
        return;
    }
    let pieces = (size.N + 63u) / 64u;
    var count = 0.0;
    var merged = vec2<f32>();
    for (var piece = 0u; piece < pieces; piece++) {
        let own = f32(min(64u, size.N - piece * 64u));
        let chunk = chunks[id.x * pieces + piece];
        let distance = chunk.x - merged.x;
        merged.x += distance * own / (count + own);
        merged.y += chunk.y + distance * distance * count * own / (count + own);
        count += own;
    }
    mean[id.x] = merged.x;
    variance[id.x] = merged.y / f32(size.N);
}
