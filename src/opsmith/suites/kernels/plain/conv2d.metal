// A threadgroup computes 8 x 16 pixels of four output channels: the part of the image below them lies in threadgroup memory.
// launch conv2d grid=(cdiv(H, 8) * cdiv(W, 16), cdiv(O, 4), min(B, 65535)) block=(16, 8) args=(x, weight, bias, y, B, C, O, H, W)
#include <metal_stdlib>
using namespace metal;

constant int HEIGHT = 8, WIDTH = 16, CHANNELS = 4;
constant int TALL = 2 * HEIGHT + 1, WIDE = 2 * WIDTH + 1;  // what 3 x 3 windows with stride 2 touch

kernel void conv2d(device const float *x [[buffer(0)]], device const float *weight [[buffer(1)]],
                   device const float *bias [[buffer(2)]], device float *y [[buffer(3)]],
                   constant long &B [[buffer(4)]], constant long &C [[buffer(5)]], constant long &O [[buffer(6)]],
                   constant long &H [[buffer(7)]], constant long &W [[buffer(8)]],
                   uint3 local_id [[thread_position_in_threadgroup]], uint3 group_id [[threadgroup_position_in_grid]],
                   uint3 groups [[threadgroups_per_grid]])
{
    threadgroup float image[TALL][WIDE];
    threadgroup float window[CHANNELS][9];
    const int place = local_id.y * WIDTH + local_id.x;
    const long tiles = (W + WIDTH - 1) / WIDTH, h0 = group_id.x / tiles * HEIGHT, w0 = group_id.x % tiles * WIDTH;
    const long o0 = static_cast<long>(group_id.y) * CHANNELS;

    for (long batch = group_id.z; batch < B; batch += groups.z) {
        float sums[CHANNELS] = {};
        for (long c = 0; c < C; c++) {
            device const float *plane = x + (batch * C + c) * 4 * H * W;
            for (int i = place; i < TALL * WIDE; i += HEIGHT * WIDTH) {
                const long row = 2 * h0 - 1 + i / WIDE, column = 2 * w0 - 1 + i % WIDE;
                const bool is_inside = row >= 0 && row < 2 * H && column >= 0 && column < 2 * W;
                image[i / WIDE][i % WIDE] = is_inside ? plane[row * 2 * W + column] : 0.0f;
            }
            if (place < CHANNELS * 9) {
                const long o = o0 + place / 9;
                window[place / 9][place % 9] = o < O ? weight[(o * C + c) * 9 + place % 9] : 0.0f;
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
            for (int i = 0; i < 9; i++) {
                const float pixel = image[2 * local_id.y + i / 3][2 * local_id.x + i % 3];
#pragma unroll
                for (int channel = 0; channel < CHANNELS; channel++) {
                    sums[channel] += window[channel][i] * pixel;
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        const long h = h0 + local_id.y, w = w0 + local_id.x;
        for (int channel = 0; channel < CHANNELS; channel++) {
            const long o = o0 + channel;
            if (o < O && h < H && w < W) {
                y[((batch * O + o) * H + h) * W + w] = sums[channel] + bias[o];
            }
        }
    }
}
