"""Right kernels over the features that are emulated, with what they compute, worked out by torch or in Python.

The expected values never come from the emulator. Many are near misses: what looks like a mistake and is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import torch

from languages.cuda.emulated_kernels import Call

X = torch.arange(256, dtype=torch.float32)
ROW = Call({"x": X}, {"y": ("fp32", (256,))}, {"N": 256})
ONE = Call({"x": X}, {"y": ("fp32", (1,))}, {"N": 256})
HEAD = "// launch k grid=(1) block=(256) args=(x, y, N)\n"
KERNEL = HEAD + "__global__ void k(const float *x, float *y, int N) {\n  int t = threadIdx.x;\n"
generator = torch.Generator().manual_seed(18)
NORMAL = torch.randn(256, generator=generator)
DRAWN = Call({"x": NORMAL}, {"y": ("fp32", (256,))}, {"N": 256})
POSITIVE = Call({"x": NORMAL.abs() + 0.1}, {"y": ("fp32", (256,))}, {"N": 256})
WHOLES = torch.randint(-(2**31), 2**31, (256,), generator=generator).to(torch.int32)
INTS = Call({"x": WHOLES}, {"y": ("int32", (256,))}, {"N": 256})
INT_HEAD = HEAD + "__global__ void k(const int *x, int *y, int N) {\n  int t = threadIdx.x;\n"
HALF = NORMAL.to(torch.float16)
BFLOAT = NORMAL.to(torch.bfloat16)
HALVES = Call({"x": HALF}, {"y": ("fp16", (256,))}, {"N": 256})
BFLOATS = Call({"x": BFLOAT}, {"y": ("bf16", (256,))}, {"N": 256})


@dataclass(frozen=True)
class Right:
    """A kernel that must run, and its output."""

    name: str
    source: str
    expected: torch.Tensor
    call: Call = ROW
    tolerance: float = 0.0  # relative; 0: to the last bit


def write_function(
    name: str, expression: str, expected: torch.Tensor, call: Call = DRAWN, tolerance: float = 2e-6
) -> Right:
    return Right(name, KERNEL + f"  float v = x[t];\n  y[t] = {expression};\n}}", expected, call, tolerance)


def write_bits(name: str, expression: str, expected: list[int]) -> Right:
    numbers = torch.tensor([(value + 2**31) % 2**32 - 2**31 for value in expected], dtype=torch.int32)
    return Right(name, INT_HEAD + f"  int v = x[t];\n  y[t] = {expression};\n}}", numbers, INTS)


def reverse_bits(value: int) -> int:
    return int(f"{value % 2**32:032b}"[::-1], 2)


V = [int(v) for v in WHOLES]
P = NORMAL.abs() + 0.1
FUNCTIONS = [
    write_function("expf", "expf(v)", NORMAL.double().exp().float()),
    write_function("fast_exp", "__expf(v)", NORMAL.double().exp().float()),
    write_function("exp_of_float", "exp(v)", NORMAL.double().exp().float()),
    write_function("tanhf", "tanhf(v)", NORMAL.double().tanh().float()),
    write_function("erff", "erff(v)", torch.erf(NORMAL.double()).float()),
    write_function("rsqrtf", "rsqrtf(v)", P.double().rsqrt().float(), POSITIVE),
    write_function("logs", "logf(v) + log2f(v) + __log10f(v)", (P.double().log() + P.double().log2() + P.double().log10()).float(), POSITIVE, 1e-5),
    write_function("powf", "powf(v, 1.5f)", P.double().pow(1.5).float(), POSITIVE),
    write_function("sines", "sinf(v) + cosf(v)", (NORMAL.double().sin() + NORMAL.double().cos()).float(), DRAWN, 1e-5),
    write_function("least_and_largest", "fminf(fmaxf(v, -1.0f), min(1.0f, 2.0f))", NORMAL.clamp(-1, 1), DRAWN, 0),
    write_function("one_rounding", "fmaf(v, v, -__fmul_rn(v, v))", (NORMAL.double() ** 2 - (NORMAL * NORMAL).double()).float(), DRAWN, 0),
    write_function("divided", "__fdividef(v, 3.0f) + __frcp_rn(2.0f) + __saturatef(v)", NORMAL / 3 + 0.5 + NORMAL.clamp(0, 1), DRAWN),
    write_function("rounded", "rintf(v) + floorf(v) + ceilf(v) + truncf(v)", NORMAL.round() + NORMAL.floor() + NORMAL.ceil() + NORMAL.trunc(), DRAWN, 0),
    write_function("infinite", "v > 1e30f ? INFINITY : (isinf(-CUDART_INF_F) ? v : NAN)", NORMAL, DRAWN, 0),
    write_function("as_bits", "__int_as_float(__float_as_int(v) & 0x7fffffff) + __uint_as_float(0)", NORMAL.abs(), DRAWN, 0),
    write_function("as_double", "(float)(exp((double)v) * rsqrt(2.0))", (NORMAL.double().exp() / 2**0.5).float()),
    write_bits("popc", "__popc(v)", [(v % 2**32).bit_count() for v in V]),
    write_bits("clz", "__clz(v)", [32 - (v % 2**32).bit_length() for v in V]),
    write_bits("ffs", "__ffs(v)", [(v % 2**32 & -(v % 2**32)).bit_length() for v in V]),
    write_bits("brev", "__brev(v)", [reverse_bits(v) for v in V]),
    write_bits("byte_perm", "__byte_perm(v, 0x44556677, 0x5140)", [(v & 0xFF) | 0x77 << 8 | (v >> 8 & 0xFF) << 16 | 0x66 << 24 for v in V]),
    write_bits("mulhi", "__mulhi(v, 12345)", [v * 12345 >> 32 for v in V]),
    write_bits("dp4a", "__dp4a(v, 0x01ff02fe, 7)", [7 - 2 * s[0] + 2 * s[1] - s[2] + s[3] for s in ([(v >> k & 0xFF) - 256 * (v >> k + 7 & 1) for k in (0, 8, 16, 24)] for v in V)]),
    write_bits("float2int", "__float2int_rn((v % 1000) / 4.0f)", [round((abs(v) % 1000 * (1 if v >= 0 else -1)) / 4) for v in V]),
]  # fmt: skip

WARP_SUM = X.view(8, 32).sum(1, keepdim=True).expand(8, 32).reshape(-1)
INDEX = torch.arange(256)
LANE, WARP = INDEX % 32, INDEX // 32
WARPS = [
    Right("shuffle", KERNEL + "  y[t] = __shfl_sync(0xffffffff, x[t], (t * 7) % 32);\n}", X[WARP * 32 + INDEX * 7 % 32]),
    Right("shuffle_in_eights", KERNEL + "  y[t] = __shfl_sync(0xffffffff, x[t], 11, 8);\n}", X[INDEX // 8 * 8 + 3]),
    Right("shuffle_up", KERNEL + "  y[t] = __shfl_up_sync(0xffffffff, x[t], 3);\n}", X[torch.where(LANE < 3, INDEX, INDEX - 3)]),
    Right("shuffle_up_in_fours", KERNEL + "  y[t] = __shfl_up_sync(0xffffffffu, x[t], 1, 4);\n}", X[torch.where(INDEX % 4 < 1, INDEX, INDEX - 1)]),
    Right("shuffle_down", KERNEL + "  y[t] = __shfl_down_sync(0xffffffff, x[t], 5);\n}", X[torch.where(LANE > 26, INDEX, INDEX + 5)]),
    Right("shuffle_xor", KERNEL + "  y[t] = __shfl_xor_sync(0xffffffff, x[t], 6, 16);\n}", X[INDEX ^ 6]),
    Right("shuffle_of_doubles", KERNEL + "  y[t] = (float)__shfl_xor_sync(0xffffffff, (double)x[t] + 0.5, 1) + __shfl_sync(~0u, (long long)t, 0);\n}", X[INDEX ^ 1] + 0.5 + (WARP * 32).float()),
    Right("sum_of_a_warp", KERNEL + "  float v = x[t];\n#pragma unroll\n  for (int o = warpSize / 2; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);\n  y[t] = v;\n}", WARP_SUM),
    Right("ballot", KERNEL + "  unsigned b = __ballot_sync(0xffffffff, x[t] > 100.0f);\n  y[t] = __popc(b);\n}", (X.view(8, 32) > 100).sum(1).repeat_interleave(32).float()),
    Right("any_and_all", KERNEL + "  y[t] = __any_sync(0xffffffff, t == 40) + 2 * __all_sync(0xffffffff, t >= 32) + 4 * __any_sync(0xffffffff, t > 999);\n}", (WARP == 1).float() + 2 * (WARP >= 1)),
    Right("match_any", KERNEL + "  y[t] = __popc(__match_any_sync(0xffffffff, t % 3));\n}", torch.tensor([sum(k % 3 == t % 3 for k in range(t // 32 * 32, t // 32 * 32 + 32)) for t in range(256)]).float()),
    Right("reduce", KERNEL + "  y[t] = __reduce_add_sync(0xffffffff, t) + __reduce_max_sync(0xffffffff, -t) + (int)__reduce_min_sync(~0u, (unsigned)t);\n}", (WARP * 32 * 32 + 496 - WARP * 32 + WARP * 32).float()),
    Right("branches_of_a_warp", KERNEL + "  float v = x[t];\n  if (t % 32 < 8) v = __shfl_xor_sync(0xff, v, 1);\n  else if (t % 32 < 16) v = __shfl_xor_sync(0xff00, v, 2);\n  y[t] = v;\n}", X[torch.where(LANE < 8, INDEX ^ 1, torch.where(LANE < 16, INDEX ^ 2, INDEX))]),
    Right("active_lanes", KERNEL + "  if (t % 2) y[t] = __popc(__activemask());\n  else y[t] = 1;\n}", torch.where(INDEX % 2 == 1, 16.0, 1.0)),
    Right("mask_of_those_that_are_left", "// launch k grid=(1) block=(64) args=(x, y, N)\n__global__ void k(const float *x, float *y, int N) {\n  int t = threadIdx.x;\n  if (t >= 40) { y[t] = 0; return; }\n  unsigned mask = __activemask();\n  float v = x[t];\n  for (int o = 4; o > 0; o /= 2) v += __shfl_xor_sync(mask, v, o);\n  y[t] = v;\n}", torch.cat([X[:40].view(5, 8).sum(1).repeat_interleave(8), torch.zeros(24)]), Call({"x": X}, {"y": ("fp32", (64,))}, {"N": 256})),
    Right("ended_lanes_named_in_a_mask", "// launch k grid=(1) block=(64) args=(x, y, N)\n__global__ void k(const float *x, float *y, int N) {\n  int t = threadIdx.x;\n  if (t >= 40) return;\n  y[t] = __popc(__ballot_sync(0xffffffff, true));\n}", torch.cat([torch.full((32,), 32.0), torch.full((8,), 8.0)]), Call({"x": X}, {"y": ("fp32", (40,))}, {"N": 256})),
    Right("a_value_that_does_not_exist_and_is_not_used", "// launch k grid=(1) block=(40) args=(x, y, N)\n__global__ void k(const float *x, float *y, int N) {\n  int t = threadIdx.x;\n  float other = __shfl_down_sync(0xffffffff, x[t], 4);\n  y[t] = t % 32 + 4 < (t < 32 ? 32 : 8) ? other : -1.0f;\n}", torch.tensor([t + 4.0 if t % 32 + 4 < (32 if t < 32 else 8) else -1.0 for t in range(40)]), Call({"x": X}, {"y": ("fp32", (40,))}, {"N": 256})),
    Right("lock_step_made_explicit", KERNEL + "  __shared__ volatile float tile[256];\n  tile[t] = x[t];\n  __syncwarp();\n  for (int o = 16; o > 0; o /= 2) {\n    float v = t % 32 < o ? tile[t + o] : 0;\n    __syncwarp();\n    if (t % 32 < o) tile[t] += v;\n    __syncwarp();\n  }\n  y[t] = tile[t / 32 * 32];\n}", WARP_SUM),
    Right("halves_of_a_warp_in_step", KERNEL + "  __shared__ float tile[256];\n  tile[t] = x[t];\n  if (t % 32 < 16) __syncwarp(0xffff);\n  else __syncwarp(0xffff0000);\n  y[t] = tile[t ^ 15];\n}", X[INDEX ^ 15]),
]  # fmt: skip

TREE = """  __shared__ float parts[256];
  parts[t] = x[t];
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) parts[t] += parts[t + s];
    __syncthreads();
  }
  y[t] = parts[0];
}"""
BLOCKS = [
    Right("tree", KERNEL + TREE, torch.full((256,), float(X.sum()))),
    Right("votes_of_a_block", KERNEL + "  int n = __syncthreads_count(t < 77), a = __syncthreads_and(t < 256), b = __syncthreads_and(t < 255), o = __syncthreads_or(t == 3), p = __syncthreads_or(t == 300);\n  y[t] = n + 1000 * (a != 0) + 2000 * (b != 0) + 4000 * (o != 0) + 8000 * (p != 0);\n}", torch.full((256,), 77.0 + 1000 + 4000)),
    Right("same_value_by_all", KERNEL + "  __shared__ int flag;\n  flag = 5;\n  __syncthreads();\n  y[t] = flag;\n}", torch.full((256,), 5.0)),
    Right("same_value_by_some", KERNEL + "  __shared__ int is_large;\n  if (t == 0) is_large = 0;\n  __syncthreads();\n  if (x[t] > 200.0f) is_large = 1;\n  __syncthreads();\n  y[t] = is_large;\n}", torch.full((256,), 1.0)),
    Right("readers_then_writer", KERNEL + "  __shared__ float one;\n  if (t == 0) one = 1;\n  for (int i = 0; i < 4; i++) {\n    __syncthreads();\n    float v = one;\n    __syncthreads();\n    if (t == i) one = v * 2;\n  }\n  __syncthreads();\n  y[t] = one;\n}", torch.full((256,), 16.0)),
    Right("two_buffers", KERNEL + "  __shared__ float buffers[2][256];\n  buffers[0][t] = x[t];\n  int now = 0;\n  for (int o = 1; o < N; o *= 2) {\n    __syncthreads();\n    buffers[1 - now][t] = buffers[now][t] + (t >= o ? buffers[now][t - o] : 0.0f);\n    now = 1 - now;\n  }\n  y[t] = buffers[now][t];\n}", X.cumsum(0)),
    Right("flat_over_two_dimensions", KERNEL + "  __shared__ float tile[8][32];\n  float *flat = &tile[0][0];\n  flat[t] = x[t];\n  __syncthreads();\n  y[t] = tile[(255 - t) / 32][(255 - t) % 32];\n}", X.flip(0)),
    Right("neighbouring_bytes", HEAD + "__global__ void k(const float *x, float *y, int N) {\n  int t = threadIdx.x;\n  __shared__ unsigned char bytes[256];\n  bytes[t] = (unsigned char)t;\n  __syncthreads();\n  y[t] = bytes[255 - t];\n}", X.flip(0)),
    Right("bytes_then_words", HEAD + "__global__ void k(const float *x, float *y, int N) {\n  int t = threadIdx.x;\n  __shared__ alignas(16) unsigned char bytes[1024];\n  reinterpret_cast<float *>(bytes)[t] = x[t];\n  __syncthreads();\n  unsigned bits = 0;\n  for (int i = 0; i < 4; i++) bits |= (unsigned)bytes[4 * (255 - t) + i] << 8 * i;\n  y[t] = __uint_as_float(bits);\n}", X.flip(0)),
    Right("dynamic_memory_in_two_parts", "// launch k grid=(1) block=(256) shared=8 * N args=(x, y, N)\n__global__ void k(const float *x, float *y, int N) {\n  extern __shared__ __align__(16) unsigned char memory[];\n  float *first = reinterpret_cast<float *>(memory), *second = first + N;\n  int t = threadIdx.x;\n  first[t] = x[t];\n  second[t] = 2 * x[t];\n  __syncthreads();\n  y[t] = first[N - 1 - t] + second[t];\n}", X.flip(0) + 2 * X),
    Right("dynamic_memory_of_a_template", "// launch k grid=(1) block=(256) shared=4 * N args=(x, y, N)\ntemplate <class T> __device__ T *take() {\n  extern __shared__ float words[];\n  return reinterpret_cast<T *>(words);\n}\n__global__ void k(const float *x, float *y, int N) {\n  int *s = take<int>();\n  s[threadIdx.x] = (int)x[threadIdx.x];\n  __syncthreads();\n  y[threadIdx.x] = s[N - 1 - threadIdx.x];\n}", X.flip(0)),
    Right("dynamic_memory_of_the_file", "// launch k grid=(1) block=(256) shared=4 * N args=(x, y, N)\nextern __shared__ float words[];\n__global__ void k(const float *x, float *y, int N) {\n  words[threadIdx.x] = x[threadIdx.x];\n  __syncthreads();\n  y[threadIdx.x] = words[N - 1 - threadIdx.x];\n}", X.flip(0)),
    Right("three_dimensions", "// launch k grid=(2, 2, 2) block=(4, 4, 2) args=(x, y, N)\n__global__ void __launch_bounds__(32) k(const float *__restrict__ x, float *__restrict__ y, int N) {\n  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);\n  int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);\n  int i = block * blockDim.x * blockDim.y * blockDim.z + thread;\n  y[i] = __ldg(&x[255 - i]);\n}", X.flip(0)),
    Right("a_thousand_threads", "// launch k grid=(1) block=(1024) args=(x, y, N)\n__global__ void k(const float *x, float *y, int N) {\n  __shared__ float parts[32];\n  int t = threadIdx.x;\n  float v = t < N ? x[t] : 0.0f;\n  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);\n  if (t % 32 == 0) parts[t / 32] = v;\n  __syncthreads();\n  if (t < 32) {\n    v = parts[t];\n    for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);\n    if (t == 0) y[0] = v;\n  }\n}", X.sum().view(1), ONE),
    Right("vectors", KERNEL + "  if (t < 64) {\n    float4 v = reinterpret_cast<const float4 *>(x)[t];\n    float2 w = make_float2(v.z, v.w);\n    reinterpret_cast<float4 *>(y)[t] = make_float4(v.y, v.x, w.y, w.x);\n  }\n}", X[INDEX ^ 1]),
    Right("constants_and_lambdas", HEAD + "__constant__ float table[4] = {1.0f, 2.0f, 4.0f, 8.0f};\nstatic __device__ const int order[4] = {3, 2, 1, 0};\ntemplate <int N_> struct Twice { static __device__ __forceinline__ float of(float v) { return N_ * v; } };\n__global__ void k(const float *x, float *y, int N) {\n  auto pick = [&](int i) { return table[order[i & 3]]; };\n  y[threadIdx.x] = Twice<2>::of(pick(threadIdx.x)) + x[threadIdx.x];\n}", X + torch.tensor([16.0, 8, 4, 2]).repeat(64)),
    Right("two_launches_and_a_workspace", "// workspace tmp: fp32 [N]\n// launch first grid=(cdiv(N, 64)) block=(64) args=(x, tmp, N)\n// launch second grid=(cdiv(N, 64)) block=(64) args=(tmp, y, N)\n__global__ void first(const float *x, float *tmp, int N) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < N) tmp[i] = 2 * x[i];\n}\n__global__ void second(const float *tmp, float *y, long long N) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < N) y[i] = tmp[N - 1 - i];\n}", 2 * X.flip(0)),
    Right("a_loop_over_the_grid", "// launch k grid=(3) block=(32) args=(x, y, N)\n__global__ void k(const float *x, float *y, unsigned N) {\n  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) y[i] = -x[i];\n}", -X),
    Right("numbers_of_all_kinds", "// launch k grid=(1) block=(256) args=(x, y, N, eps)\n__global__ void k(const float *x, float *y, const size_t N, const float eps) {\n  if (threadIdx.x < N) y[threadIdx.x] = x[threadIdx.x] * eps;\n}", X * torch.tensor(0.1), Call({"x": X}, {"y": ("fp32", (256,))}, {"N": 256, "eps": 0.1})),
    Right("bools_and_longs", "// launch k grid=(1) block=(64) args=(m, i, b, l)\n#include <stdint.h>\n__global__ void k(const bool *m, const int64_t *i, float *b, long long *l) {\n  int t = threadIdx.x;\n  b[t] = m[t] ? 1.0f : -1.0f;\n  l[t] = i[t] * 3 + (1LL << 40);\n}", torch.where(INDEX[:64] % 3 == 0, 1.0, -1.0), Call({"m": INDEX[:64] % 3 == 0, "i": INDEX[:64]}, {"b": ("fp32", (64,)), "l": ("int64", (64,))})),
    Right("long_is_not_long_long", HEAD + "#include <stdint.h>\n__device__ float name_of(long *) { return 1; }\n__device__ float name_of(long long *) { return 2; }\n__device__ float name_of(unsigned long long *) { return 3; }\n__global__ void k(const float *x, float *y, int N) {\n  int64_t *whole = nullptr;\n  uint64_t *natural = nullptr;\n  long *own = nullptr;\n  y[threadIdx.x] = x[threadIdx.x] + 100 * name_of(whole) + 10 * name_of(natural) + name_of(own);\n}", X + 231),
    Right("local_array", KERNEL + "  float own[8];\n  for (int i = 0; i < 8; i++) own[i] = x[(t + i) % N];\n  float s = 0;\n  for (int i = 0; i < 8; i++) s += own[(i * 3) & 7];\n  y[t] = s;\n}", sum(X.roll(-i) for i in range(8))),
    Right("recursion", HEAD + "__device__ float add(const float *x, int n) { return n == 0 ? 0.0f : x[n - 1] + add(x, n - 1); }\n__global__ void k(const float *x, float *y, int N) { y[threadIdx.x] = add(x, threadIdx.x % 100); }", torch.tensor([sum(range(t % 100)) for t in range(256)]).float()),
]  # fmt: skip

COUNT = "// launch clear grid=(1) block=(1) args=(y)\n// launch k grid=(4) block=(64) args=(x, y)\n__global__ void clear(float *y) { y[0] = START; }\n__global__ void k(const float *x, float *y) {\n  float v = x[blockIdx.x * 64 + threadIdx.x];\n  BODY\n}"
HISTOGRAM = """// launch clear grid=(1) block=(256) args=(y)
// launch k grid=(4) block=(64) args=(x, y)
__global__ void clear(int *y) { y[threadIdx.x] = 0; }
__global__ void k(const int *x, int *y) {
  __shared__ unsigned counts[16];
  if (threadIdx.x < 16) counts[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&counts[x[blockIdx.x * 64 + threadIdx.x] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(y + threadIdx.x, (int)counts[threadIdx.x]);
}"""
OUTCOME = Call({"x": WHOLES}, {"y": ("int32", (8,))}, {"N": 256})
ATOMICS = [
    Right("atomic_sum", COUNT.replace("START", "0").replace("BODY", "atomicAdd(&y[0], v);"), X.sum().view(1), ONE),
    Right("atomic_by_compare_and_swap", COUNT.replace("START", "0").replace("BODY", "int *place = (int *)y, old = *(volatile int *)x, seen;\n  old = __float_as_int(0.0f);\n  do { seen = old; old = atomicCAS(place, seen, __float_as_int(fmaxf(__int_as_float(seen), v))); } while (old != seen);"), X.max().view(1), ONE),
    Right("histogram", HISTOGRAM, torch.bincount(WHOLES & 15, minlength=256).to(torch.int32), INTS),
    Right("atomics_of_whole_numbers", "// launch clear grid=(1) block=(8) args=(y)\n// launch k grid=(4) block=(64) args=(x, y)\n__global__ void clear(int *y) { y[threadIdx.x] = threadIdx.x == 4 ? -1 : 0; }\n__global__ void k(const int *x, int *y) {\n  int v = x[blockIdx.x * 64 + threadIdx.x];\n  atomicMax(&y[0], v);\n  atomicMin(&y[1], v);\n  atomicOr(&y[2], v);\n  atomicXor(&y[3], v);\n  atomicAnd(&y[4], v | 15);\n  atomicSub(&y[5], v & 7);\n  atomicInc((unsigned *)&y[6], 99);\n  atomicDec((unsigned *)&y[7], 99);\n}",
          torch.tensor([max(V), min(V), reduce(lambda a, b: a | b, V), reduce(lambda a, b: a ^ b, V), reduce(lambda a, b: a & (b | 15), V, -1), -sum(v & 7 for v in V), 256 % 100, (-256) % 100], dtype=torch.int32), OUTCOME),
    Right("atomics_of_long_numbers_and_doubles", "// launch clear grid=(1) block=(1) args=(y)\n// launch k grid=(1) block=(256) args=(x, y)\n__global__ void clear(float *y) { y[0] = 0; }\n__global__ void k(const float *x, float *y) {\n  __shared__ unsigned long long whole;\n  __shared__ double real;\n  if (threadIdx.x == 0) whole = 0, real = 0;\n  __syncthreads();\n  atomicAdd(&whole, 1ull << 33);\n  atomicAdd(&real, (double)x[threadIdx.x]);\n  __syncthreads();\n  if (threadIdx.x == 0) y[0] = (float)(whole >> 33) + (float)real;\n}", (X.sum() + 256).view(1), ONE),
    Right("the_last_block", "// workspace parts: fp32 [4]\n// workspace count: int32 [1]\n// launch clear grid=(1) block=(1) args=(count)\n// launch k grid=(4) block=(64) args=(x, y, parts, count)\n__global__ void clear(int *count) { *count = 0; }\n__global__ void k(const float *x, float *y, float *parts, int *count) {\n  __shared__ bool is_last;\n  float v = x[blockIdx.x * 64 + threadIdx.x];\n  v += __shfl_xor_sync(~0u, v, 1);\n  if (threadIdx.x == 0) {\n    parts[blockIdx.x] = v;\n    __threadfence();\n    is_last = atomicAdd(count, 1) == gridDim.x - 1;\n  }\n  __syncthreads();\n  if (is_last && threadIdx.x == 0) {\n    float sum = 0;\n    for (int i = 0; i < 4; i++) sum += ((volatile float *)parts)[i];\n    y[0] = sum;\n  }\n}", torch.tensor([1.0 + 129 + 257 + 385]), ONE),
    Right("places_by_an_atomic", "// workspace count: int32 [1]\n// launch clear grid=(1) block=(1) args=(count)\n// launch k grid=(1) block=(256) args=(x, y, count)\n__global__ void clear(int *count) { *count = 0; }\n__global__ void k(const float *x, float *y, int *count) {\n  int place = atomicAdd(count, 1);\n  y[place] = x[7];\n}", torch.full((256,), 7.0)),
]  # fmt: skip

HALF_HEAD = "#include <cuda_fp16.h>\n__global__ void k(const half *x, half *y, int N) {\n  int t = threadIdx.x;\n  half v = x[t];\n"
BF_HEAD = HALF_HEAD.replace("fp16", "bf16").replace("half", "__nv_bfloat16")


def write_half(name: str, body: str, expected: torch.Tensor, tolerance: float = 0.0) -> Right:
    return Right(name, HEAD + HALF_HEAD + f"  {body}\n}}", expected.to(torch.float16), HALVES, tolerance)


def write_bfloat(name: str, body: str, expected: torch.Tensor, tolerance: float = 0.0) -> Right:
    return Right(name, HEAD + BF_HEAD + f"  {body}\n}}", expected.to(torch.bfloat16), BFLOATS, tolerance)


H, B = HALF.double(), BFLOAT.double()
HALF_KERNELS = [
    write_half("half_sum", "y[t] = __hadd(v, __float2half(1.5f));", H + 1.5),
    write_half("half_operators", "half w = v * v; w += v; y[t] = w / __float2half(3.0f);", ((H * H).half().double() + H).half().double() / 3),
    write_half("half_fused", "y[t] = __hfma(v, v, v);", H * H + H),
    write_half("half_through_float", "y[t] = __float2half_rn(__half2float(v) * 0.1f);", (HALF.float() * 0.1)),
    write_half("half_pairs", "if (t < 128) { half2 p = reinterpret_cast<const half2 *>(x)[t]; p = __hfma2(p, p, __floats2half2_rn(1.0f, 2.0f)); reinterpret_cast<half2 *>(y)[t] = __halves2half2(__high2half(p), __low2half(p)); }", ((H * H).view(128, 2) + torch.tensor([1.0, 2.0])).flip(1).reshape(-1)),
    write_half("half_functions", "y[t] = hexp(v);", H.exp(), 1e-3),
    write_half("half_largest", "y[t] = __hmax(__hneg(v), __habs(__float2half(0.25f)));", torch.maximum(-H, torch.tensor(0.25))),
    write_half("half_compared", "y[t] = __hgt(v, __float2half(0.0f)) ? v : __int2half_rn(-2);", torch.where(H > 0, H, torch.tensor(-2.0, dtype=torch.float64))),
    write_half("half_bits", "y[t] = __ushort_as_half(__half_as_ushort(v) ^ 0x8000);", -H),
    write_half("half_shuffled", "y[t] = __shfl_xor_sync(0xffffffff, v, 1);", H[INDEX ^ 1]),
    write_half("half_shared", "__shared__ half tile[16][17]; tile[t / 16][t % 16] = v; __syncthreads(); y[t] = tile[t % 16][t / 16];", H.view(16, 16).t().reshape(-1)),
    write_bfloat("bfloat_sum", "y[t] = __hadd(v, __float2bfloat16(1.5f));", B + 1.5),
    write_bfloat("bfloat_operators", "y[t] = v * v;", B * B),
    write_bfloat("bfloat_fused", "y[t] = __hfma(v, v, v);", B * B + B),
    write_bfloat("bfloat_through_float", "y[t] = __float2bfloat16(__bfloat162float(v) * 0.1f);", BFLOAT.float() * 0.1),
    write_bfloat("bfloat_pairs", "if (t < 128) { __nv_bfloat162 p = reinterpret_cast<const __nv_bfloat162 *>(x)[t]; float2 f = __bfloat1622float2(p); reinterpret_cast<__nv_bfloat162 *>(y)[t] = __floats2bfloat162_rn(f.y, f.x); }", B[INDEX ^ 1]),
]  # fmt: skip

CODES = torch.arange(256, dtype=torch.uint8)


def write_fp8(name: str, type_: str, dtype: torch.dtype, most: float) -> list[Right]:
    """Every code read; numbers between them, beyond the largest, infinite and none written; the same in fours."""
    values = CODES.view(dtype).float()
    finite = values[values.isfinite()].unique()
    ties = torch.cat([(finite[1:] + finite[:-1]) / 2, torch.tensor([most * 1.02, -1e30, torch.inf])])
    near = torch.nextafter(ties, torch.full_like(ties, torch.inf))
    x = torch.cat([ties, near, finite])[:640]
    written = x.clamp(-most, most).to(dtype).view(torch.uint8)
    codes, numbers = CODES.view(dtype), Call({"x": x}, {"y": (name, (len(x),))}, {"N": len(x)})
    plan = "// launch k grid=({}) block=(64) args=(x, y, N)\n#include <cuda_fp8.h>\n__global__ void k(const {} *x, {} *y, int N) {{\n  int t = blockIdx.x * 64 + threadIdx.x;\n  if (t < N) {};\n}}"
    half, float_ = (
        Call({"x": codes}, {"y": ("fp16", (256,))}, {"N": 256}),
        Call({"x": codes}, {"y": ("fp32", (256,))}, {"N": 256}),
    )
    fours = f"__nv_fp8x4_{name[4:]}"
    return [
        Right(f"{name}_read", plan.format(4, type_, "float", "y[t] = float(x[t])"), values, float_),
        Right(f"{name}_in_half", plan.format(4, type_, "__half", "y[t] = static_cast<__half>(x[t])"), values.half(), half),
        Right(f"{name}_written", plan.format(10, "float", type_, f"y[t] = {type_}(x[t])"), written.view(dtype), numbers),
        Right(f"{name}_in_fours", plan.format(1, fours, "float4", "y[t] = float4(x[t])").replace("t < N", "t < 64"), values, float_),
        Right(f"{name}_by_function", plan.format(10, "float", "unsigned char", f"y[t] = __nv_cvt_float_to_fp8(x[t], __NV_SATFINITE, __NV_{name[4:].upper()})"), written.view(dtype), numbers),
    ]  # fmt: skip


FP8_KERNELS = [
    *write_fp8("fp8_e4m3", "__nv_fp8_e4m3", torch.float8_e4m3fn, 448.0),
    *write_fp8("fp8_e5m2", "__nv_fp8_e5m2", torch.float8_e5m2, 57344.0),
]

RIGHT = [*FP8_KERNELS, *FUNCTIONS, *WARPS, *BLOCKS, *ATOMICS, *HALF_KERNELS]
