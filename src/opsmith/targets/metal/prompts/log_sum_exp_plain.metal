// A thread per row.
// launch log_sum_exp grid=(cdiv(M, 128)) block=(128) args=(x, y, M, N, scale)
#include <metal_stdlib>
using namespace metal;

kernel void log_sum_exp(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                        constant uint &M [[buffer(2)]], constant uint &N [[buffer(3)]],
                        constant float &scale [[buffer(4)]], uint m [[thread_position_in_grid]])
{
    if (m >= M) {
        return;
    }
    device const float *row = x + ulong(m) * N;
    float largest = scale * row[0];
    for (uint n = 1; n < N; n++) {
        largest = max(largest, scale * row[n]);
    }
    float sum = 0.0f;
    for (uint n = 0; n < N; n++) {
        sum += exp(scale * row[n] - largest);
    }
    y[m] = largest + log(sum);
}
