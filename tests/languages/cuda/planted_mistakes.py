"""Kernels with one mistake each, the line where it shows, and the change that mends them.

Lines that end with `// HERE` are where the finding may be; all calls compute from x = 0, 1, 2 ... and y, both fp32 of
256 entries, unless the mistake says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from languages.cuda.emulated_kernels import Call

X = torch.arange(256, dtype=torch.float32)
ROW = Call({"x": X}, {"y": ("fp32", (256,))}, {"N": 256})


@dataclass(frozen=True)
class Planted:
    """A kernel with a mistake."""

    name: str
    source: str
    words: tuple[str, ...]  # of the finding
    mends: tuple[tuple[str, str], ...]  # what is replaced by what
    expected: torch.Tensor | None = field(default_factory=lambda: X.flip(0))  # of the mended kernel; None: any
    call: Call = ROW

    @property
    def lines(self) -> list[int]:
        return [number for number, line in enumerate(self.source.split("\n"), 1) if line.endswith("// HERE")]

    @property
    def mended(self) -> str:
        source = self.source
        for old, new in self.mends:
            assert old in source, (self.name, old)
            source = source.replace(old, new)
        return source


ONE_BLOCK = "// launch k grid=(1) block=(256) args=(x, y, N)\n__global__ void k(const float *x, float *y, int N) {\n"
FOUR_BLOCKS = "// launch k grid=(4) block=(64) args=(x, y, N)\n__global__ void k(const float *x, float *y, int N) {\n"
SUM = torch.full((256,), float(X.sum()))
ODD = Call({"x": X[:250]}, {"y": ("fp32", (250,))}, {"N": 250})
FIRST = Call({"x": X}, {"y": ("fp32", (1,))}, {"N": 256})

MISTAKES = [
    Planted(
        "no_barrier",
        ONE_BLOCK
        + """  __shared__ float tile[256];
  int t = threadIdx.x;
  if (t < 64) tile[t] = 0;
  __syncthreads();
  tile[t] = x[t];  // HERE
  /**/
  y[t] = t < 64 ? tile[t ^ 32] : tile[t];  // HERE
}""",
        ("race on shared memory", "tile[", "no barrier", "__syncthreads()"),
        (("/**/", "__syncthreads();"),),
        torch.where(X < 64, (X.int() ^ 32).float(), X),
    ),
    Planted(
        "no_barrier_before_the_tile_is_filled_again",
        ONE_BLOCK
        + """  __shared__ float tile[64];
  int t = threadIdx.x;
  for (int start = 0; start < N; start += 64) {
    if (t < 64) tile[t] = x[start + t];  // HERE
    __syncthreads();
    if (t / 64 == start / 64) y[t] = tile[63 - t % 64];  // HERE
    /**/
  }
}""",
        ("race on shared memory", "tile["),
        (("/**/", "__syncthreads();"),),
        X.view(4, 64).flip(1).reshape(-1),
    ),
    Planted(
        "no_barrier_in_dynamic_memory",
        """// launch k grid=(1) block=(256) shared=4 * N args=(x, y, N)
__global__ void k(const float *x, float *y, int N) {
  extern __shared__ float tile[];
  int t = threadIdx.x;
  tile[t] = 0;
  __syncthreads();
  tile[t] = x[t];  // HERE
  /**/
  y[t] = tile[N - 1 - t];  // HERE
}""",
        ("race on shared memory", "dynamic shared memory at byte"),
        (("/**/", "__syncthreads();"),),
    ),
    Planted(
        "lock_step_in_a_warp",
        ONE_BLOCK
        + """  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = x[t];
  __syncthreads();
  for (int o = 16; o > 0; o /= 2) {
    float v = tile[t] + tile[t ^ o];  // HERE
    /*1*/
    tile[t] = v;  // HERE
    /*2*/
  }
  y[t] = tile[t];
}""",
        ("race on shared memory", "lock step", "__syncwarp()"),
        (("/*1*/", "__syncwarp();"), ("/*2*/", "__syncwarp();")),
        X.view(8, 32).sum(1, keepdim=True).expand(8, 32).reshape(-1),
    ),
    Planted(
        "all_threads_write_one_entry",
        ONE_BLOCK
        + """  __shared__ float last;
  int t = threadIdx.x;
  if (/**/true) last = x[t];  // HERE
  __syncthreads();
  y[t] = last;
}""",
        ("race on shared memory", "writes last[0]"),
        (("/**/true", "t == 255"),),
        torch.full((256,), 255.0),
    ),
    Planted(
        "half_of_the_block_syncs",
        ONE_BLOCK
        + """  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = x[t];
  if (t < 128) {
    __syncthreads();  // HERE
    y[t] = tile[255 - t];
  } else {
    __syncthreads();  // HERE
    y[t] = tile[255 - t];
  }
}""",
        ("divergent barrier", "waits at this barrier", "at the one on line"),
        (
            ("  if (t < 128) {\n    __syncthreads();  // HERE", "  __syncthreads();\n  if (t < 128) {"),
            ("    __syncthreads();  // HERE\n", ""),
        ),
    ),
    Planted(
        "return_before_a_barrier",
        """// launch k grid=(1) block=(256) args=(x, y, N)
__global__ void k(const float *x, float *y, int N) {
  __shared__ float tile[256];
  int t = threadIdx.x;
  if (t >= N) return;
  tile[t] = x[t];
  __syncthreads();  // HERE
  y[t] = tile[N - 1 - t];
}""",
        ("divergent barrier", "has ended without reaching"),
        (
            ("  if (t >= N) return;\n  tile[t] = x[t];", "  if (t < N) tile[t] = x[t];"),
            ("y[t] = tile", "if (t < N) y[t] = tile"),
        ),
        X[:250].flip(0),
        ODD,
    ),
    Planted(
        "barrier_in_a_loop_of_differing_length",
        ONE_BLOCK
        + """  __shared__ float tile[256];
  int t = threadIdx.x;
  float sum = 0;
  for (int i = 0; i < /**/1 + t / 128; i++) {
    tile[t] = x[t];
    __syncthreads();  // HERE
    sum = tile[255 - t];
    __syncthreads();  // HERE
  }
  y[t] = sum;
}""",
        ("divergent barrier",),
        (("/**/1 + t / 128", "2"),),
    ),
    Planted(
        "shuffle_in_half_a_warp",
        ONE_BLOCK
        + """  int t = threadIdx.x;
  float v = x[t];
  if (t % 32 < 16) v += __shfl_xor_sync(/**/0xffffffff, v, 8);  // HERE
  __syncthreads();
  y[t] = v;
}""",
        ("divergent warp", "a shuffle", "0xffffffff", "waits in __syncthreads()"),
        (("/**/0xffffffff", "0x0000ffff"),),
        torch.where(X % 32 < 16, X + (X.int() ^ 8).float(), X),
    ),
    Planted(
        "lane_that_is_not_in_its_mask",
        ONE_BLOCK
        + """  int t = threadIdx.x;
  y[t] = __shfl_sync(/**/0x0000ffff, x[t], 3);  // HERE
}""",
        ("0x0000ffff, in which its lane 16 is not",),
        (("/**/0x0000ffff", "0xffffffff"),),
        torch.div(X, 32, rounding_mode="floor") * 32 + 3,
    ),
    Planted(
        "two_shuffles_for_two_halves",
        ONE_BLOCK
        + """  int t = threadIdx.x;
  float v;
  if (t % 2 == 0)
    v = __shfl_sync(/*1*/0xffffffff, x[t], 0);  // HERE
  else
    v = __shfl_sync(/*2*/0xffffffff, x[t], 1);  // HERE
  y[t] = v;
}""",
        ("divergent warp", "another operation of the warp"),
        (("/*1*/0xffffffff", "0x55555555"), ("/*2*/0xffffffff", "0xaaaaaaaa")),
        torch.div(X, 32, rounding_mode="floor") * 32 + X % 2,
    ),
    Planted(
        "sync_of_a_warp_without_the_upper_lanes",
        ONE_BLOCK
        + """  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = x[t];  // HERE
  if (t % 32 < 16) __syncwarp(/**/0xffff);
  else __syncwarp(/**/0xffff0000);
  y[t] = tile[t ^ 16];  // HERE
}""",
        ("tile[",),
        (("  if (t % 32 < 16) __syncwarp(/**/0xffff);\n  else __syncwarp(/**/0xffff0000);", "  __syncwarp();"),),
        (X.int() ^ 16).float(),
    ),
    Planted(
        "index_beyond_a_shared_array",
        ONE_BLOCK
        + """  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t + 1] = x[t];  // HERE
  __syncthreads();
  y[t] = tile[255 - t];
}""",
        ("index 256 of a shared or local array of type float [256]",),
        (("t + 1", "t"),),
    ),
    Planted(
        "pointer_from_one_shared_array_into_the_next",
        """// launch k grid=(1) block=(256) args=(x, y, N)
__device__ void fill(float *tile, const float *x, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) tile[i] = x[i % 256];  // HERE
}
__global__ void k(const float *x, float *y, int N) {
  __shared__ float first[256];
  __shared__ float second[256];
  second[threadIdx.x] = 0;
  __syncthreads();
  fill(first, x, /**/257);
  __syncthreads();
  y[threadIdx.x] = first[255 - threadIdx.x];
}""",
        ("writes first[256], outside of first: 1 entry beyond its end; first has 256 entries",),
        (("/**/257", "256"),),
    ),
    Planted(
        "too_little_dynamic_memory",
        """// launch k grid=(1) block=(256) shared=2 * N args=(x, y, N)
__global__ void k(const float *x, float *y, int N) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = x[threadIdx.x];  // HERE
  __syncthreads();
  y[threadIdx.x] = tile[N - 1 - threadIdx.x];
}""",
        ("dynamic shared memory at byte 512, outside of it: it has 512 bytes by shared=",),
        (("=2 *", "=4 *"),),
    ),
    Planted(
        "no_tail_guard",
        """// launch k grid=(cdiv(N, 64)) block=(64) args=(x, y, N)
__global__ void k(const float *x, float *y, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (/**/true) y[i] = x[i];  // HERE
}""",
        ("reads x[250], outside of x: 1 entry beyond its end; x has 250 entries",),
        (("/**/true", "i < N"),),
        X[:250],
        ODD,
    ),
    Planted(
        "too_many_blocks",
        """// launch k grid=(5) block=(64) args=(x, y, N)
__global__ void k(const float *x, float *y, int N) {
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = 2.0f;  // HERE
}""",
        ("writes y[256], outside of y: 1 entry beyond its end; y has 256 entries", "block (4, 0, 0)"),
        (("(5)", "(4)"),),
        torch.full((256,), 2.0),
    ),
    Planted(
        "index_below_zero",
        ONE_BLOCK
        + """  int t = threadIdx.x;
  y[t] = /**/true ? x[t - 1] : 0.0f;  // HERE
}""",
        ("reads x[-1], outside of x: 1 entry before its begin",),
        (("/**/true", "t > 0"),),
        (X - 1).clamp(min=0),
    ),
    Planted(
        "write_to_an_input",
        """// launch k grid=(1) block=(256) args=(x, y, N)
__global__ void k(const float *x, float *y, int N) {
  int t = threadIdx.x;
  const_cast<float *>(x)[t] = 1.0f;  // HERE
  y[t] = 2.0f;
}""",
        ("writes x[0], an input",),
        (("  const_cast<float *>(x)[t] = 1.0f;  // HERE\n", ""),),
        torch.full((256,), 2.0),
    ),
    Planted(
        "vectors_at_odd_places",
        ONE_BLOCK
        + """  int t = threadIdx.x;
  if (t < 63) {
    float4 v = *reinterpret_cast<const float4 *>(x + 4 * t + /**/1);  // HERE
    y[4 * t] = v.x, y[4 * t + 1] = v.y, y[4 * t + 2] = v.z, y[4 * t + 3] = v.w;
  }
  if (t >= 252) y[t] = x[t];
}""",
        ("misaligned access", "x at byte 4", "multiple of 16 bytes"),
        (("/**/1", "0"),),
        X,
    ),
    Planted(
        "shared_memory_that_nobody_wrote",
        ONE_BLOCK
        + """  __shared__ float tile[256];
  int t = threadIdx.x;
  if (t < /**/200) tile[t] = x[t];
  __syncthreads();
  y[t] = tile[255 - t];  // HERE
}""",
        ("tile[", "shared memory that no thread of the block has written"),
        (("/**/200", "256"),),
    ),
    Planted(
        "workspace_that_nobody_wrote",
        """// workspace tmp: fp32 [N]
// launch fill grid=(1) block=(256) args=(x, tmp)
// launch k grid=(1) block=(256) args=(tmp, y)
__global__ void fill(const float *x, float *tmp) {
  if (threadIdx.x != /**/17) tmp[threadIdx.x] = x[threadIdx.x];
}
__global__ void k(const float *tmp, float *y) {
  y[threadIdx.x] = tmp[255 - threadIdx.x];  // HERE
}""",
        ("reads tmp[17], the workspace that nobody has written",),
        (("/**/17", "1000"),),
    ),
    Planted(
        "output_that_is_added_to",
        ONE_BLOCK
        + """  int t = threadIdx.x;
  y[t] += x[t];  // HERE
}""",
        ("reads y[0], the output that nobody has written",),
        (("+=", "="),),
        X,
    ),
    Planted(
        "two_blocks_write_one_place",
        FOUR_BLOCKS
        + """  int i = threadIdx.x /**/;
  y[i] = x[blockIdx.x * 64 + threadIdx.x];  // HERE
}""",
        ("race on global memory", "blocks have no order", "block (1, 0, 0)", "block (0, 0, 0)"),
        (("/**/", "+ blockIdx.x * 64"),),
        X,
    ),
    Planted(
        "a_block_reads_what_another_writes",
        FOUR_BLOCKS
        + """  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];  // HERE
  __syncthreads();
  if (i >= /**/64) y[i] += y[i - 64];  // HERE
}""",
        (
            "race on global memory",
            "blocks have no order",
        ),
        (("/**/64", "10000"),),
        X,
    ),
    Planted(
        "a_sum_without_atomics",
        """// launch clear grid=(1) block=(1) args=(y)
// launch k grid=(4) block=(64) args=(x, y)
__global__ void clear(float *y) { y[0] = 0; }
__global__ void k(const float *x, float *y) {
  float v = x[blockIdx.x * 64 + threadIdx.x];
  y[0] += v;  // HERE
}""",
        ("race on global memory", "reads y[0]"),
        (("y[0] += v;", "atomicAdd(y, v);"),),
        X.sum().view(1),
        FIRST,
    ),
    Planted(
        "a_sum_that_is_read_too_early",
        ONE_BLOCK
        + """  __shared__ float sum;
  int t = threadIdx.x;
  if (t == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, x[t]);  // HERE
  /**/
  y[t] = sum;  // HERE
}""",
        ("race on shared memory", "atomically"),
        (("/**/", "__syncthreads();"),),
        SUM,
    ),
    Planted(
        "the_last_block_without_a_fence",
        """// workspace parts: fp32 [4]
// workspace count: int32 [1]
// launch clear grid=(1) block=(1) args=(count)
// launch k grid=(4) block=(64) args=(x, y, parts, count)
__global__ void clear(int *count) { *count = 0; }
__global__ void k(const float *x, float *y, float *parts, int *count) {
  __shared__ float sum;
  __shared__ bool is_last;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, x[blockIdx.x * 64 + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sum;
    /**/
    is_last = atomicAdd(count, 1) == 3;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) y[0] = parts[0] + parts[1] + parts[2] + parts[3];  // HERE
}""",
        ("race on global memory", "blocks have no order", "parts["),
        (("/**/", "__threadfence();"),),
        X.sum().view(1),
        FIRST,
    ),
    Planted(
        "index_beyond_a_local_array",
        ONE_BLOCK
        + """  float own[4];
  int t = threadIdx.x;
  for (int i = 0; i <= 4; i++) own[i & 7] = x[(t + i) % 256];  // HERE
  y[t] = own[t & 3];
}""",
        ("index 4 of a shared or local array of type float [4]",),
        (("<= 4", "< 4"),),
        (X + (X % 4)) % 256,
    ),
    Planted(
        "a_value_of_a_lane_that_does_not_exist",
        """// launch k grid=(1) block=(40) args=(x, y, N)
__global__ void k(const float *x, float *y, int N) {
  float sum = 0;
  for (int i = threadIdx.x; i < N; i += blockDim.x) sum += x[i];
  for (int o = 16; o > 0; o /= 2) sum += __shfl_down_sync(0xffffffff, sum, o);  // HERE
  __shared__ float parts[2];
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) y[0] = parts[0] + parts[1];
}""",
        ("reads the value of lane", "does not exist in this block"),
        (("(40)", "(64)"),),
        X.sum().view(1),
        FIRST,
    ),
    Planted(
        "a_copy_that_is_too_long",
        ONE_BLOCK
        + """  __shared__ float tile[256];
  if (threadIdx.x == 0) memcpy(tile, x, 4 * /**/257);  // HERE
  __syncthreads();
  y[threadIdx.x] = tile[255 - threadIdx.x];
}""",
        ("reads x[0] to x[256], outside of x: 1 entry beyond its end; x has 256 entries",),
        (("/**/257", "256"),),
    ),
    Planted(
        "a_pointer_to_nothing",
        ONE_BLOCK
        + """  const float *other = N > 10000 ? x : /**/nullptr;
  y[threadIdx.x] = other[255 - threadIdx.x];  // HERE
}""",
        ("outside of all arrays",),
        (("/**/nullptr", "x"),),
    ),
    Planted(
        "an_assertion_that_does_not_hold",
        ONE_BLOCK
        + """  if (threadIdx.x == /**/7) __trap();  // HERE
  y[threadIdx.x] = x[255 - threadIdx.x];
}""",
        ("thread 7 of block (0, 0, 0) of k reaches __trap()",),
        (("/**/7", "700"),),
    ),
    Planted(
        "a_local_variable_of_another_thread",
        ONE_BLOCK
        + """  __shared__ float *place;
  __shared__ float value;
  float own = x[threadIdx.x];
  if (threadIdx.x == 0) place = &own, value = own;
  __syncthreads();
  y[threadIdx.x] = /**/*place + own;  // HERE
  __syncthreads();
  if (threadIdx.x == 0) place = 0;
}""",
        ("a local variable of another thread",),
        (("/**/*place", "value"),),
        X,
    ),
    Planted(
        "halves_at_odd_places",
        """// launch k grid=(1) block=(64) args=(h, y)
#include <cuda_fp16.h>
__global__ void k(const half *h, float *y) {
  half2 pair = *reinterpret_cast<const half2 *>(h + 2 * threadIdx.x + /**/1);  // HERE
  y[threadIdx.x] = __low2float(pair) + __high2float(pair);
}""",
        ("misaligned access", "h at byte 2", "multiple of 4 bytes"),
        (("/**/1", "0"),),
        torch.arange(128, dtype=torch.float32).view(64, 2).sum(1),
        Call({"h": torch.arange(128, dtype=torch.float16)}, {"y": ("fp32", (64,))}),
    ),
    Planted(
        "a_row_of_threads_in_two_dimensions",
        """// launch k grid=(1, 1) block=(16, 16) args=(x, y)
__global__ void k(const float *x, float *y) {
  __shared__ float tile[16][17];
  int i = threadIdx.x, j = threadIdx.y;
  tile[j][i] = x[16 * j + i];  // HERE
  /**/
  y[16 * j + i] = tile[i][j];  // HERE
}""",
        ("tile[", "thread (", "of block (0, 0, 0)"),
        (("/**/", "__syncthreads();"),),
        X.view(16, 16).t().reshape(-1),
    ),
    Planted(
        "bytes_of_one_word",
        """// launch k grid=(1) block=(64) args=(b, y)
__global__ void k(const signed char *b, float *y) {
  __shared__ signed char tile[64];
  int t = threadIdx.x;
  tile[t] = b[t];  // HERE
  /**/
  y[t] = tile[63 - t];  // HERE
}""",
        ("tile[",),
        (("/**/", "__syncthreads();"),),
        torch.arange(64, dtype=torch.float32).flip(0),
        Call({"b": torch.arange(64, dtype=torch.int8)}, {"y": ("fp32", (64,))}),
    ),
    Planted(
        "a_wait_for_blocks_that_have_not_begun",
        """// workspace count: int32 [1]
// launch clear grid=(1) block=(1) args=(count)
// launch k grid=(4) block=(64) args=(x, y, count)
__global__ void clear(int *count) { *count = 0; }
__global__ void k(const float *x, float *y, int *count) {
  if (threadIdx.x == 0) {
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < /**/4) {}  // HERE
  }
  int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[255 - i];
}""",
        ("looked at one place four million times",),
        (("/**/4", "1"),),
    ),
    Planted(
        "a_lock_between_threads_that_nobody_opens",
        ONE_BLOCK
        + """  __shared__ int lock;
  if (threadIdx.x == 0) lock = 0;
  __syncthreads();
  while (atomicCAS(&lock, 0, 1) != 0) {}  // HERE
  /**/
  y[threadIdx.x] = x[255 - threadIdx.x];
}""",
        ("looked at one place four million times",),
        (("/**/", "atomicExch(&lock, 0);"),),
    ),
    Planted(
        "a_cached_read_of_what_is_written",
        ONE_BLOCK
        + """  int t = threadIdx.x;
  y[t] = 2 * x[255 - t];
  __syncthreads();
  float half = 0.5f * __ldg(y + t);  // HERE
  __syncthreads();
  y[t] = half;
}""",
        (" by __ldg", "is written at line 4 in the same launch"),
        (("__ldg(y + t)", "y[t]"),),
    ),
    Planted(
        "a_write_behind_a_cached_read",
        "// workspace w: fp32 [256]\n// launch k grid=(1) block=(256) args=(x, w, N)\n"
        "// launch m grid=(1) block=(256) args=(w, y, N)\n__global__ void k(const float *x, float *w, int N) {\n"
        + """  w[threadIdx.x] = x[255 - threadIdx.x];
}
__global__ void m(float *w, float *y, int N) {
  y[threadIdx.x] = __ldg(w + threadIdx.x);
  w[threadIdx.x] = 0;  // HERE
}""",
        ("writes w[", "which is read by __ldg at line 8"),
        (("w[threadIdx.x] = 0;", ""),),
    ),
]
