// problem: gather
// wrong: 36 invocations copy two columns each: the columns from 72 on stay as they were
// launch gather grid=(min(T, 65535), cdiv(T, 65535)) block=(36) args=(table, index, y, T, D)

struct Sizes { T: u32, D: u32 }

@group(0) @binding(0) var<storage, read> table: array<f32>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> size: Sizes;

@compute @workgroup_size(36)
fn gather(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
          @builtin(local_invocation_index) lane: u32) {
    let t = group.y * groups.x + group.x;
    if (t >= size.T) {
        return;
    }
    for (var column = lane; column < min(size.D, 72u); column += 36u) {
        y[t * size.D + column] = table[u32(index[t]) * size.D + column];
    }
}
