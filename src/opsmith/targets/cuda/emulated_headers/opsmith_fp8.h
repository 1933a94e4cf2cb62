// Floats of one byte, alone, in pairs and in fours. Conversions round once, to the nearest; those of the types saturate.
#pragma once
#include "opsmith_half.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

OPSMITH_PLAIN __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t mode, __nv_fp8_interpretation_t kind) {
  unsigned beyond = kind == __NV_E4M3 ? 0x7f : 0x7c;  // behind the largest number
  if (x != x) return 0x7f;
  unsigned rounded = kind == __NV_E4M3 ? opsmith::round_number(x, 3, -6, 7, beyond, opsmith::NEAREST)
                                       : opsmith::round_number(x, 2, -14, 15, beyond, opsmith::NEAREST);
  unsigned code = rounded & 0x7fff;
  if (code == beyond && mode == __NV_SATFINITE) code--;
  return (__nv_fp8_storage_t)(rounded >> 8 & 0x80 | code);
}
OPSMITH_PLAIN __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t mode, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double_to_fp8(x, mode, kind);
}
OPSMITH_PLAIN __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t mode, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double_to_fp8(opsmith::Fp16::widen(x.x), mode, kind);
}
OPSMITH_PLAIN __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t mode, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double_to_fp8(opsmith::Bf16::widen(x.x), mode, kind);
}
OPSMITH_PLAIN __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 v, __nv_saturation_t mode, __nv_fp8_interpretation_t kind) {
  return (__nv_fp8x2_storage_t)(__nv_cvt_float_to_fp8(v.x, mode, kind) | __nv_cvt_float_to_fp8(v.y, mode, kind) << 8);
}
OPSMITH_PLAIN __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
  unsigned size = x & 0x7f;
  if (size == 0x7f) return __half_raw{0x7fff};
  if (kind == __NV_E5M2) return __half_raw{(unsigned short)(x << 8)};
  float value = size < 8 ? (float)size * 0x1p-9f : opsmith::cast_bits<float>((size << 20) + 0x3c000000u);
  return __half_raw{(unsigned short)(opsmith::Fp16::round(value) | (x & 0x80) << 8)};
}
OPSMITH_PLAIN __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t kind) {
  return __half2_raw{__nv_cvt_fp8_to_halfraw((unsigned char)x, kind).x, __nv_cvt_fp8_to_halfraw((unsigned char)(x >> 8), kind).x};
}

#define OPSMITH_FROM_FP8(T, A, KIND) explicit OPSMITH_INSIDE T(A v) : __x(__nv_cvt_double_to_fp8((double)v, __NV_SATFINITE, KIND)) {}
#define OPSMITH_TO_FP8(A) explicit OPSMITH_INSIDE operator A() const { return (A)widen(); }
#define OPSMITH_FP8(T, T2, T4, KIND) \
  struct T { \
    __nv_fp8_storage_t __x; \
    T() = default; \
    explicit OPSMITH_INSIDE T(__half v) : T(v.widen()) {} \
    explicit OPSMITH_INSIDE T(__nv_bfloat16 v) : T(v.widen()) {} \
    OPSMITH_FROM_FP8(T, float, KIND) OPSMITH_FROM_FP8(T, double, KIND) OPSMITH_FROM_FP8(T, short, KIND) \
    OPSMITH_FROM_FP8(T, unsigned short, KIND) OPSMITH_FROM_FP8(T, int, KIND) OPSMITH_FROM_FP8(T, unsigned, KIND) \
    OPSMITH_FROM_FP8(T, long, KIND) OPSMITH_FROM_FP8(T, unsigned long, KIND) OPSMITH_FROM_FP8(T, long long, KIND) \
    OPSMITH_FROM_FP8(T, unsigned long long, KIND) \
    OPSMITH_INSIDE float widen() const { return opsmith::Fp16::widen(__nv_cvt_fp8_to_halfraw(__x, KIND).x); } \
    explicit OPSMITH_INSIDE operator __half() const { return __half(widen()); } \
    explicit OPSMITH_INSIDE operator __nv_bfloat16() const { return __nv_bfloat16(widen()); } \
    explicit OPSMITH_INSIDE operator bool() const { return (__x & 0x7f) != 0; } \
    OPSMITH_TO_FP8(float) OPSMITH_TO_FP8(double) OPSMITH_TO_FP8(char) OPSMITH_TO_FP8(signed char) \
    OPSMITH_TO_FP8(unsigned char) OPSMITH_TO_FP8(short) OPSMITH_TO_FP8(unsigned short) OPSMITH_TO_FP8(int) \
    OPSMITH_TO_FP8(unsigned) OPSMITH_TO_FP8(long) OPSMITH_TO_FP8(unsigned long) OPSMITH_TO_FP8(long long) \
    OPSMITH_TO_FP8(unsigned long long) \
  }; \
  struct T2 { \
    __nv_fp8x2_storage_t __x; \
    T2() = default; \
    explicit OPSMITH_INSIDE T2(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, KIND)) {} \
    explicit OPSMITH_INSIDE T2(__half2 v) : T2(float2{v.x.widen(), v.y.widen()}) {} \
    explicit OPSMITH_INSIDE T2(__nv_bfloat162 v) : T2(float2{v.x.widen(), v.y.widen()}) {} \
    OPSMITH_INSIDE float widen(int place) const { \
      return opsmith::Fp16::widen(__nv_cvt_fp8_to_halfraw((unsigned char)(__x >> 8 * place), KIND).x); \
    } \
    explicit OPSMITH_INSIDE operator float2() const { return float2{widen(0), widen(1)}; } \
    explicit OPSMITH_INSIDE operator __half2() const { return __half2(__half(widen(0)), __half(widen(1))); } \
  }; \
  struct T4 { \
    __nv_fp8x4_storage_t __x; \
    T4() = default; \
    OPSMITH_INSIDE T4(T2 a, T2 b) : __x(a.__x | (unsigned)b.__x << 16) {} \
    explicit OPSMITH_INSIDE T4(float4 v) : T4(T2(float2{v.x, v.y}), T2(float2{v.z, v.w})) {} \
    OPSMITH_INSIDE T4(__half2 a, __half2 b) : T4(T2(a), T2(b)) {} \
    OPSMITH_INSIDE T4(__nv_bfloat162 a, __nv_bfloat162 b) : T4(T2(a), T2(b)) {} \
    explicit OPSMITH_INSIDE operator float4() const { \
      T2 low, high; \
      low.__x = (unsigned short)__x, high.__x = (unsigned short)(__x >> 16); \
      return float4{low.widen(0), low.widen(1), high.widen(0), high.widen(1)}; \
    } \
  };
OPSMITH_FP8(__nv_fp8_e4m3, __nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __NV_E4M3)
OPSMITH_FP8(__nv_fp8_e5m2, __nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __NV_E5M2)
