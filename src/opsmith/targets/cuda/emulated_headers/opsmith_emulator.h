// What a CUDA program is compiled with as C++: its words, types and functions, in terms of the runtime (emulator.cpp).
// No header of the system is included. Where a function touches memory it does so through the runtime, with the line
// of the program that called it, or is a macro, so that the compiler's instrumentation sees that line.
#pragma once
#include "opsmith_runtime.h"

// -- words

#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 13
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __shared__ static OPSMITH_SECTION(__COUNTER__)
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;  // as for NVRTC
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef long long clock_t_;

#define INT8_MAX 127
#define INT8_MIN (-128)
#define UINT8_MAX 255
#define INT16_MAX 32767
#define INT16_MIN (-32768)
#define UINT16_MAX 65535
#define INT32_MAX __INT_MAX__
#define INT32_MIN (-__INT_MAX__ - 1)
#define UINT32_MAX 0xffffffffU
#define INT64_MAX __LONG_MAX__
#define INT64_MIN (-__LONG_MAX__ - 1)
#define UINT64_MAX 0xffffffffffffffffUL
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX 0xffffffffU
#define LONG_MAX __LONG_MAX__
#define LONG_MIN (-__LONG_MAX__ - 1)
#define LLONG_MAX __LONG_LONG_MAX__
#define LLONG_MIN (-__LONG_LONG_MAX__ - 1)
#define ULLONG_MAX 0xffffffffffffffffULL
#define CHAR_BIT 8
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_EPSILON __DBL_EPSILON__
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define HUGE_VAL __builtin_inf()
#define NULL __null
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402

// -- copies

#define memcpy(...) opsmith_copy(__VA_ARGS__)
#define memset(...) opsmith_fill(__VA_ARGS__)

// -- vector types

#define OPSMITH_VECTOR(T, N, A1, A2, A3, A4) \
  struct alignas(A1) N##1 { T x; }; \
  struct alignas(A2) N##2 { T x, y; }; \
  struct alignas(A3) N##3 { T x, y, z; }; \
  struct alignas(A4) N##4 { T x, y, z, w; }; \
  OPSMITH_PLAIN N##1 make_##N##1(T x) { return N##1{x}; } \
  OPSMITH_PLAIN N##2 make_##N##2(T x, T y) { return N##2{x, y}; } \
  OPSMITH_PLAIN N##3 make_##N##3(T x, T y, T z) { return N##3{x, y, z}; } \
  OPSMITH_PLAIN N##4 make_##N##4(T x, T y, T z, T w) { return N##4{x, y, z, w}; }
OPSMITH_VECTOR(signed char, char, 1, 2, 1, 4)
OPSMITH_VECTOR(unsigned char, uchar, 1, 2, 1, 4)
OPSMITH_VECTOR(short, short, 2, 4, 2, 8)
OPSMITH_VECTOR(unsigned short, ushort, 2, 4, 2, 8)
OPSMITH_VECTOR(int, int, 4, 8, 4, 16)
OPSMITH_VECTOR(unsigned, uint, 4, 8, 4, 16)
OPSMITH_VECTOR(long, long, 8, 16, 8, 16)
OPSMITH_VECTOR(unsigned long, ulong, 8, 16, 8, 16)
OPSMITH_VECTOR(long long, longlong, 8, 16, 8, 16)
OPSMITH_VECTOR(unsigned long long, ulonglong, 8, 16, 8, 16)
OPSMITH_VECTOR(float, float, 4, 8, 4, 16)
OPSMITH_VECTOR(double, double, 8, 16, 8, 16)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};
// Variables, as NVRTC has them, so that what asks for their types gets one answer.
#define OPSMITH_BUILTIN(T, name, symbol) \
  extern const T name __asm__(symbol) __attribute__((visibility("hidden")));
OPSMITH_BUILTIN(uint3, threadIdx, "opsmith_thread_index")
OPSMITH_BUILTIN(uint3, blockIdx, "opsmith_block_index")
OPSMITH_BUILTIN(dim3, blockDim, "opsmith_block_size")
OPSMITH_BUILTIN(dim3, gridDim, "opsmith_grid_size")
OPSMITH_BUILTIN(int, warpSize, "opsmith_warp_size")

// -- barriers, fences, warps

OPSMITH_PLAIN void __syncthreads(OPSMITH_LINE) { opsmith_barrier(opsmith_line, 0, 0); }
OPSMITH_PLAIN int __syncthreads_count(int p, OPSMITH_LINE) { return opsmith_barrier(opsmith_line, p != 0, 1); }
OPSMITH_PLAIN int __syncthreads_and(int p, OPSMITH_LINE) { return opsmith_barrier(opsmith_line, p != 0, 2); }
OPSMITH_PLAIN int __syncthreads_or(int p, OPSMITH_LINE) { return opsmith_barrier(opsmith_line, p != 0, 3); }
OPSMITH_PLAIN void __barrier_sync(unsigned, OPSMITH_LINE) { opsmith_barrier(opsmith_line, 0, 0); }
OPSMITH_PLAIN void __syncwarp(unsigned mask = 0xffffffffu, OPSMITH_LINE) {
  opsmith_warp(OPSMITH_SYNC, mask, 0, 0, opsmith_line);
}
OPSMITH_PLAIN void __threadfence(OPSMITH_LINE) { opsmith_fence(opsmith_line); }
OPSMITH_PLAIN void __threadfence_block(OPSMITH_LINE) { opsmith_fence_block(opsmith_line); }
OPSMITH_PLAIN void __threadfence_system(OPSMITH_LINE) { opsmith_fence(opsmith_line); }

template <class T> OPSMITH_PLAIN T __shfl_sync(unsigned mask, T v, int lane, int width = 32, OPSMITH_LINE) {
  int own = opsmith_lane(), base = own & ~(width - 1);
  return opsmith_shuffle(mask, v, base + (lane & (width - 1)), opsmith_line);
}
template <class T> OPSMITH_PLAIN T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32, OPSMITH_LINE) {
  int own = opsmith_lane(), base = own & ~(width - 1), lane = own - (int)delta;
  return opsmith_shuffle(mask, v, lane < base ? own : lane, opsmith_line);
}
template <class T> OPSMITH_PLAIN T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32, OPSMITH_LINE) {
  int own = opsmith_lane(), last = own | (width - 1), lane = own + (int)delta;
  return opsmith_shuffle(mask, v, lane > last ? own : lane, opsmith_line);
}
template <class T> OPSMITH_PLAIN T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32, OPSMITH_LINE) {
  int own = opsmith_lane(), last = own | (width - 1), lane = own ^ bits;
  return opsmith_shuffle(mask, v, lane > last ? own : lane, opsmith_line);
}
OPSMITH_PLAIN unsigned __ballot_sync(unsigned mask, int p, OPSMITH_LINE) {
  return (unsigned)opsmith_warp(OPSMITH_BALLOT, mask, p != 0, 0, opsmith_line);
}
OPSMITH_PLAIN int __any_sync(unsigned mask, int p, OPSMITH_LINE) {
  return (unsigned)opsmith_warp(OPSMITH_BALLOT, mask, p != 0, 0, opsmith_line) != 0;
}
OPSMITH_PLAIN int __all_sync(unsigned mask, int p, OPSMITH_LINE) {
  return (unsigned)opsmith_warp(OPSMITH_BALLOT, mask, p == 0, 0, opsmith_line) == 0;
}
OPSMITH_PLAIN int __uni_sync(unsigned mask, int p, OPSMITH_LINE) {
  unsigned long r = opsmith_warp(OPSMITH_BALLOT, mask, p != 0, 0, opsmith_line);
  return (unsigned)r == 0 || (unsigned)r == (unsigned)(r >> 32);
}
OPSMITH_PLAIN unsigned __activemask(OPSMITH_LINE) {
  return (unsigned)opsmith_warp(OPSMITH_ACTIVE, 0xffffffffu, 0, 0, opsmith_line);
}
template <class T> OPSMITH_PLAIN unsigned __match_any_sync(unsigned mask, T v, OPSMITH_LINE) {
  return (unsigned)opsmith_warp(OPSMITH_MATCH_ANY, mask, opsmith::pack(v), 0, opsmith_line);
}
template <class T> OPSMITH_PLAIN unsigned __match_all_sync(unsigned mask, T v, int *pred, OPSMITH_LINE) {
  unsigned all = (unsigned)opsmith_warp(OPSMITH_MATCH_ALL, mask, opsmith::pack(v), 0, opsmith_line);
  *pred = all != 0;
  return all;
}
#define OPSMITH_REDUCE(name, T, op) \
  OPSMITH_PLAIN T name(unsigned mask, T v, OPSMITH_LINE) { \
    return (T)opsmith_warp(op, mask, (unsigned long)v, 0, opsmith_line); \
  }
OPSMITH_REDUCE(__reduce_add_sync, unsigned, OPSMITH_ADD)
OPSMITH_REDUCE(__reduce_add_sync, int, OPSMITH_ADD)
OPSMITH_REDUCE(__reduce_min_sync, unsigned, OPSMITH_MIN)
OPSMITH_REDUCE(__reduce_min_sync, int, OPSMITH_MIN_SIGNED)
OPSMITH_REDUCE(__reduce_max_sync, unsigned, OPSMITH_MAX)
OPSMITH_REDUCE(__reduce_max_sync, int, OPSMITH_MAX_SIGNED)
OPSMITH_REDUCE(__reduce_and_sync, unsigned, OPSMITH_AND)
OPSMITH_REDUCE(__reduce_or_sync, unsigned, OPSMITH_OR)
OPSMITH_REDUCE(__reduce_xor_sync, unsigned, OPSMITH_XOR)
OPSMITH_PLAIN void __nanosleep(unsigned) {}
OPSMITH_PLAIN void __trap(OPSMITH_LINE) { opsmith_stop(1, opsmith_line); }
OPSMITH_PLAIN void __brkpt() {}
OPSMITH_PLAIN void __prof_trigger(int) {}
OPSMITH_PLAIN long long clock64() { return opsmith_clock(); }
OPSMITH_PLAIN int clock() { return (int)opsmith_clock(); }
OPSMITH_PLAIN unsigned long long __globaltimer() { return (unsigned long long)opsmith_clock(); }
template <class... T> OPSMITH_PLAIN int printf(const char *, T...) { return 0; }
#define assert(...) ((__VA_ARGS__) ? (void)0 : opsmith_stop(2, __builtin_LINE()))
#define __builtin_assume(...) ((void)0)
#define __assume(...) ((void)0)
#define __builtin_assume_aligned(p, ...) (p)
OPSMITH_PLAIN size_t __cvta_generic_to_shared(const void *p) { return (size_t)p; }

// -- loads and stores with hints

// The read itself is the program's, on its line; the result is no place.
template <class T> OPSMITH_PLAIN const T *opsmith_through_cache(const T *place, OPSMITH_LINE) {
  opsmith_read_only(place, sizeof(T), opsmith_line);
  return place;
}
template <class T> OPSMITH_PLAIN T opsmith_value(T value) { return value; }
#define __ldg(...) opsmith_value(*opsmith_through_cache(__VA_ARGS__))
#define __ldcg(...) (*(__VA_ARGS__))
#define __ldca(...) (*(__VA_ARGS__))
#define __ldcs(...) (*(__VA_ARGS__))
#define __ldlu(...) (*(__VA_ARGS__))
#define __ldcv(...) (*(__VA_ARGS__))
#define __stwb(p, ...) ((void)(*(p) = (__VA_ARGS__)))
#define __stcg(p, ...) ((void)(*(p) = (__VA_ARGS__)))
#define __stcs(p, ...) ((void)(*(p) = (__VA_ARGS__)))
#define __stwt(p, ...) ((void)(*(p) = (__VA_ARGS__)))

// -- atomics

#define OPSMITH_ATOMIC_AS(name, expression) \
  template <class T> OPSMITH_PLAIN T name(T *place, opsmith::Exactly<T> v, OPSMITH_LINE) { \
    return opsmith_update(place, opsmith_line, [&](T old) -> T { return expression; }); \
  }
#define OPSMITH_ATOMIC(name, expression) \
  OPSMITH_ATOMIC_AS(name, expression) OPSMITH_ATOMIC_AS(name##_block, expression) \
  OPSMITH_ATOMIC_AS(name##_system, expression)
OPSMITH_ATOMIC(atomicAdd, (T)(old + v))
OPSMITH_ATOMIC(atomicSub, (T)(old - v))
OPSMITH_ATOMIC(atomicMax, old < v ? v : old)
OPSMITH_ATOMIC(atomicMin, v < old ? v : old)
OPSMITH_ATOMIC(atomicAnd, (T)(old & v))
OPSMITH_ATOMIC(atomicOr, (T)(old | v))
OPSMITH_ATOMIC(atomicXor, (T)(old ^ v))
OPSMITH_ATOMIC(atomicInc, (T)(old >= v ? 0 : old + 1))
OPSMITH_ATOMIC(atomicDec, (T)(old == 0 || old > v ? v : old - 1))
#define OPSMITH_EXCHANGE(name) \
  template <class T> OPSMITH_PLAIN T name(T *place, opsmith::Exactly<T> v, OPSMITH_LINE) { \
    opsmith_begin_atomic(place, sizeof(T), opsmith_line, 0); \
    unsigned long bits = opsmith::pack<T>(v), earlier; \
    if (opsmith_load_earlier(place, sizeof(T), &earlier) && earlier == bits) { \
      opsmith_keep(place, sizeof(T)); \
      return v; \
    } \
    T old = opsmith::unpack<T>(opsmith_load(place, sizeof(T))); \
    opsmith_store(place, bits, sizeof(T)); \
    return old; \
  }
OPSMITH_EXCHANGE(atomicExch) OPSMITH_EXCHANGE(atomicExch_block) OPSMITH_EXCHANGE(atomicExch_system)
#define OPSMITH_CAS(name) \
  template <class T> \
  OPSMITH_PLAIN T name(T *place, opsmith::Exactly<T> expected, opsmith::Exactly<T> v, OPSMITH_LINE) { \
    opsmith_begin_atomic(place, sizeof(T), opsmith_line, 1); \
    unsigned long wanted = opsmith::pack<T>(expected), old; \
    if (opsmith_load_earlier(place, sizeof(T), &old) && (old != wanted || old == opsmith::pack<T>(v))) { \
      opsmith_keep(place, sizeof(T)); \
      return opsmith::unpack<T>(old); \
    } \
    old = opsmith_load(place, sizeof(T)); \
    if (old == wanted) opsmith_store(place, opsmith::pack<T>(v), sizeof(T)); \
    else opsmith_keep(place, sizeof(T)); \
    return opsmith::unpack<T>(old); \
  }
OPSMITH_CAS(atomicCAS) OPSMITH_CAS(atomicCAS_block) OPSMITH_CAS(atomicCAS_system)

// -- bits

OPSMITH_PLAIN int __popc(unsigned x) { return __builtin_popcount(x); }
OPSMITH_PLAIN int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
OPSMITH_PLAIN int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
OPSMITH_PLAIN int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
OPSMITH_PLAIN int __ffs(int x) { return __builtin_ffs(x); }
OPSMITH_PLAIN int __ffsll(long long x) { return __builtin_ffsll(x); }
OPSMITH_PLAIN unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
OPSMITH_PLAIN unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
OPSMITH_PLAIN unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    unsigned k = s >> 4 * i & 0xf, b = (unsigned)(both >> 8 * (k & 7)) & 0xff;
    if (k & 8) b = b & 0x80 ? 0xff : 0;
    r |= b << 8 * i;
  }
  return r;
}
OPSMITH_PLAIN unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) << (s & 31) >> 32);
}
OPSMITH_PLAIN unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) >> (s & 31));
}
OPSMITH_PLAIN int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
OPSMITH_PLAIN unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
OPSMITH_PLAIN long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
OPSMITH_PLAIN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
OPSMITH_PLAIN int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
OPSMITH_PLAIN unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
OPSMITH_PLAIN unsigned __sad(int a, int b, unsigned c) { return (unsigned)(a < b ? b - a : a - b) + c; }
OPSMITH_PLAIN unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a < b ? b - a : a - b) + c; }
OPSMITH_PLAIN int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
OPSMITH_PLAIN int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
OPSMITH_PLAIN int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; i++) c += (int)(signed char)(a >> 8 * i) * (int)(signed char)(b >> 8 * i);
  return c;
}
OPSMITH_PLAIN unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; i++) c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
  return c;
}
OPSMITH_PLAIN int __dp4a(char4 a, char4 b, int c) { return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
OPSMITH_PLAIN unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
OPSMITH_PLAIN int __float_as_int(float x) { return opsmith::cast_bits<int>(x); }
OPSMITH_PLAIN unsigned __float_as_uint(float x) { return opsmith::cast_bits<unsigned>(x); }
OPSMITH_PLAIN float __int_as_float(int x) { return opsmith::cast_bits<float>(x); }
OPSMITH_PLAIN float __uint_as_float(unsigned x) { return opsmith::cast_bits<float>(x); }
OPSMITH_PLAIN long long __double_as_longlong(double x) { return opsmith::cast_bits<long long>(x); }
OPSMITH_PLAIN double __longlong_as_double(long long x) { return opsmith::cast_bits<double>(x); }
OPSMITH_PLAIN int __double2loint(double x) { return (int)opsmith::cast_bits<long long>(x); }
OPSMITH_PLAIN int __double2hiint(double x) { return (int)(opsmith::cast_bits<long long>(x) >> 32); }
OPSMITH_PLAIN double __hiloint2double(int hi, int lo) {
  return opsmith::cast_bits<double>((unsigned long long)(unsigned)hi << 32 | (unsigned)lo);
}

#include "opsmith_math.h"
#include "opsmith_call.h"

struct __half;
struct __half2;
struct __nv_bfloat16;
struct __nv_bfloat162;
struct __nv_fp8_e4m3;
struct __nv_fp8x2_e4m3;
struct __nv_fp8x4_e4m3;
struct __nv_fp8_e5m2;
struct __nv_fp8x2_e5m2;
struct __nv_fp8x4_e5m2;

namespace opsmith {  // which types an array's entries may be read as, beside their own
OPSMITH_HOLDS(fp32, float1) OPSMITH_HOLDS(fp32, float2) OPSMITH_HOLDS(fp32, float3) OPSMITH_HOLDS(fp32, float4)
OPSMITH_HOLDS(fp64, double2) OPSMITH_HOLDS(fp16, __half) OPSMITH_HOLDS(fp16, __half2)
OPSMITH_HOLDS(bf16, __nv_bfloat16) OPSMITH_HOLDS(bf16, __nv_bfloat162) OPSMITH_HOLDS(int8, char2)
OPSMITH_HOLDS(int8, char4) OPSMITH_HOLDS(int32, int2) OPSMITH_HOLDS(int32, int4) OPSMITH_HOLDS(int64, longlong2)
OPSMITH_HOLDS(uint8, uchar2) OPSMITH_HOLDS(uint8, uchar4) OPSMITH_HOLDS(int4x2, uchar2) OPSMITH_HOLDS(int4x2, uchar4)
OPSMITH_HOLDS(int16, short2) OPSMITH_HOLDS(int16, short4) OPSMITH_HOLDS(fp8_e4m3, __nv_fp8_e4m3)
OPSMITH_HOLDS(fp8_e4m3, __nv_fp8x2_e4m3) OPSMITH_HOLDS(fp8_e4m3, __nv_fp8x4_e4m3) OPSMITH_HOLDS(fp8_e5m2, __nv_fp8_e5m2)
OPSMITH_HOLDS(fp8_e5m2, __nv_fp8x2_e5m2) OPSMITH_HOLDS(fp8_e5m2, __nv_fp8x4_e5m2)
}  // namespace opsmith
