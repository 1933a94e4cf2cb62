// A workgroup an image, which counts in its own memory.
// launch image_histogram grid=(min(B, 65535), cdiv(B, 65535)) block=(256, 1, 1) args=(image, counts, B, N)

struct Sizes { B: u32, N: u32 }

@group(0) @binding(0) var<storage, read> image: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<i32>;
@group(0) @binding(2) var<uniform> size: Sizes;

var<workgroup> bins: array<atomic<i32>, 256>;

@compute @workgroup_size(256)
fn image_histogram(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                   @builtin(local_invocation_index) lane: u32) {
    let b = group.y * groups.x + group.x;
    if (b >= size.B) {
        return;
    }
    atomicStore(&bins[lane], 0);
    workgroupBarrier();
    for (var n = lane; n < size.N; n += 256u) {
        atomicAdd(&bins[image[b * size.N + n]], 1);
    }
    workgroupBarrier();
    counts[b * 256u + lane] = atomicLoad(&bins[lane]);
}
