// problem: row_sum
// wrong: asks for a binding that the host does not make, of a group of its own
// launch row_sum grid=(min(M, 65535), cdiv(M, 65535)) block=(1) args=(x, y, M, N)

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;
@group(1) @binding(0) var<storage, read_write> other: array<u32>;

@compute @workgroup_size(1)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>) {
    other[1u << 20u] = 0u;
    y[group.x] = f32(other[group.x]);
}
