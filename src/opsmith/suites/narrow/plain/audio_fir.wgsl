// An invocation a sample. Sums leave 32 bits: what lies 15 bits up and more is summed apart, for up to 65535 taps.
// launch audio_fir grid=(cdiv(T, 64), C) block=(64, 1, 1) args=(x, taps, y, T, L)

struct Sizes { T: u32, L: u32 }

@group(0) @binding(0) var<storage, read> x: array<i32>;
@group(0) @binding(1) var<storage, read> taps: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<i32>;
@group(0) @binding(3) var<uniform> size: Sizes;

@compute @workgroup_size(64)
fn audio_fir(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let t = group.x * 64u + lane;
    if (t >= size.T) {
        return;
    }
    var high = 0i;
    var low = 16384i;
    for (var i = 0u; i < min(size.L, t + 1u); i++) {
        let product = taps[i] * x[group.y * size.T + t - i];
        high += product >> 15u;
        low += product & 32767;
    }
    y[group.y * size.T + t] = clamp(high + (low >> 15u), -32768, 32767);
}
