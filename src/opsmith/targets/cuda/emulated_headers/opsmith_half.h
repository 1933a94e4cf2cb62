// Numbers of 16 bits: fp16 and bf16, alone and in pairs. Operations are done in float (fma: in double) and rounded once.
#pragma once
#include "opsmith_emulator.h"

namespace opsmith {
enum Rounding { NEAREST, ZERO, UP, DOWN };

// A double, rounded to a format of `bits` of mantissa behind the point and exponents from `least` on; as its bits.
// Values that come from double operations on float are within half a unit beyond what any of them needs.
OPSMITH_PLAIN unsigned short round_number(double x, int bits, int least, int bias, unsigned infinity, Rounding mode) {
  unsigned long all = cast_bits<unsigned long>(x);
  unsigned sign = (unsigned)(all >> 63), place = (unsigned)(all >> 52) & 0x7ff;
  unsigned long mantissa = all & 0xfffffffffffffull;
  unsigned top = sign << 15;
  if (place == 0x7ff) return (unsigned short)(mantissa ? 0x7fffu : top | infinity);
  if (place == 0) return (unsigned short)top;  // zero, or far below all others
  int exponent = (int)place - 1023;
  mantissa |= 1ul << 52;
  int drop = 52 - bits + (exponent < least ? least - exponent : 0);
  if (drop > 63) drop = 63;
  unsigned long whole = mantissa >> drop, rest = mantissa & ((1ul << drop) - 1), half = 1ul << (drop - 1);
  bool is_up = mode == NEAREST ? rest > half || (rest == half && (whole & 1))
               : mode == ZERO  ? false
               : mode == UP    ? !sign && rest
                               : sign && rest;
  whole += is_up;
  unsigned long result = exponent < least ? whole : whole + ((unsigned long)(exponent + bias - 1) << bits);
  if (result >= infinity) {
    bool stays = mode == ZERO || (mode == UP && sign) || (mode == DOWN && !sign);
    result = stays ? infinity - 1 : infinity;
  }
  return (unsigned short)(top | (unsigned)result);
}

struct Fp16 {
  static OPSMITH_INSIDE unsigned short round(double x, Rounding mode = NEAREST) {
    return round_number(x, 10, -14, 15, 0x7c00, mode);
  }
  static OPSMITH_INSIDE unsigned short round(float x) {
#ifdef __F16C__
    typedef float V __attribute__((vector_size(16)));
    typedef short H __attribute__((vector_size(16)));
    if (x != x) return 0x7fff;
    H r = (H)__builtin_ia32_vcvtps2ph(V{x, 0, 0, 0}, 0);
    return (unsigned short)r[0];
#else
    return round_number(x, 10, -14, 15, 0x7c00, NEAREST);
#endif
  }
  static OPSMITH_INSIDE float widen(unsigned short bits) {
#ifdef __F16C__
    typedef float V __attribute__((vector_size(16)));
    typedef short H __attribute__((vector_size(16)));
    V r = (V)__builtin_ia32_vcvtph2ps(H{(short)bits, 0, 0, 0, 0, 0, 0, 0});
    return r[0];
#else
    unsigned sign = (unsigned)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
    if (exponent == 31) return cast_bits<float>(sign | 0x7f800000u | mantissa << 13);
    if (exponent) return cast_bits<float>(sign | (exponent + 112) << 23 | mantissa << 13);
    float small = (float)mantissa * 0x1p-24f;
    return sign ? -small : small;
#endif
  }
};
struct Bf16 {
  static OPSMITH_INSIDE unsigned short round(double x, Rounding mode = NEAREST) {
    return round_number(x, 7, -126, 127, 0x7f80, mode);
  }
  static OPSMITH_INSIDE unsigned short round(float x) {
    unsigned bits = cast_bits<unsigned>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
  }
  static OPSMITH_INSIDE float widen(unsigned short bits) { return cast_bits<float>((unsigned)bits << 16); }
};

// a * b + c, rounded once: the product is exact in double, and the sum is made odd where it is not.
template <class F> OPSMITH_PLAIN unsigned short fuse(float a, float b, float c) {
  double product = (double)a * b, addend = c, sum = OPSMITH_KEEP(product + addend);
  if (!__builtin_isfinite(sum)) return F::round(sum);
  double high = OPSMITH_KEEP(sum - product), error = (product - OPSMITH_KEEP(sum - high)) + (addend - high);
  unsigned long bits = cast_bits<unsigned long>(sum);
  if (error != 0 && !(bits & 1)) bits = (error > 0) == (sum > 0) ? bits + 1 : bits - 1;
  return F::round(cast_bits<double>(bits));
}
}  // namespace opsmith

#define OPSMITH_FROM(T, A, F, P) OPSMITH_INSIDE T(A v) : __x(opsmith::F::round((P)v)) {}
#define OPSMITH_TO(A) OPSMITH_INSIDE operator A() const { return (A)widen(); }
#define OPSMITH_TYPE(T, T2, F, RAW, RAW2) \
  struct RAW { unsigned short x; }; \
  struct RAW2 { unsigned short x, y; }; \
  struct T { \
    unsigned short __x; \
    T() = default; \
    OPSMITH_INSIDE constexpr T(RAW r) : __x(r.x) {} \
    OPSMITH_FROM(T, float, F, float) OPSMITH_FROM(T, double, F, double) OPSMITH_FROM(T, short, F, float) \
    OPSMITH_FROM(T, unsigned short, F, float) OPSMITH_FROM(T, int, F, double) OPSMITH_FROM(T, unsigned, F, double) \
    OPSMITH_FROM(T, long, F, double) OPSMITH_FROM(T, unsigned long, F, double) OPSMITH_FROM(T, long long, F, double) \
    OPSMITH_FROM(T, unsigned long long, F, double) \
    OPSMITH_INSIDE float widen() const { return opsmith::F::widen(__x); } \
    OPSMITH_INSIDE operator float() const { return widen(); } \
    OPSMITH_INSIDE operator RAW() const { return RAW{__x}; } \
    OPSMITH_INSIDE operator bool() const { return (__x & 0x7fff) != 0; } \
    OPSMITH_TO(char) OPSMITH_TO(signed char) OPSMITH_TO(unsigned char) OPSMITH_TO(short) OPSMITH_TO(unsigned short) \
    OPSMITH_TO(int) OPSMITH_TO(unsigned) OPSMITH_TO(long) OPSMITH_TO(unsigned long) OPSMITH_TO(long long) \
    OPSMITH_TO(unsigned long long) \
    OPSMITH_INSIDE T &operator=(float v) { return *this = T(v); } \
    OPSMITH_INSIDE T &operator=(double v) { return *this = T(v); } \
    OPSMITH_INSIDE T &operator=(int v) { return *this = T(v); } \
    OPSMITH_INSIDE T &operator=(unsigned v) { return *this = T(v); } \
  }; \
  struct alignas(4) T2 { \
    T x, y; \
    T2() = default; \
    OPSMITH_INSIDE T2(T a, T b) : x(a), y(b) {} \
  }; \
  OPSMITH_PLAIN T opsmith_bits_##T(unsigned short bits) { return T(RAW{bits}); } \
  OPSMITH_PLAIN T operator+(T a, T b) { return T(a.widen() + b.widen()); } \
  OPSMITH_PLAIN T operator-(T a, T b) { return T(a.widen() - b.widen()); } \
  OPSMITH_PLAIN T operator*(T a, T b) { return T(a.widen() * b.widen()); } \
  OPSMITH_PLAIN T operator/(T a, T b) { return T(a.widen() / b.widen()); } \
  OPSMITH_PLAIN T operator-(T a) { return opsmith_bits_##T((unsigned short)(a.__x ^ 0x8000)); } \
  OPSMITH_PLAIN T operator+(T a) { return a; } \
  OPSMITH_PLAIN T &operator+=(T &a, T b) { return a = a + b; } \
  OPSMITH_PLAIN T &operator-=(T &a, T b) { return a = a - b; } \
  OPSMITH_PLAIN T &operator*=(T &a, T b) { return a = a * b; } \
  OPSMITH_PLAIN T &operator/=(T &a, T b) { return a = a / b; } \
  OPSMITH_PLAIN T &operator++(T &a) { return a = a + T(1.0f); } \
  OPSMITH_PLAIN T &operator--(T &a) { return a = a - T(1.0f); } \
  OPSMITH_PLAIN bool operator==(T a, T b) { return a.widen() == b.widen(); } \
  OPSMITH_PLAIN bool operator!=(T a, T b) { return a.widen() != b.widen(); } \
  OPSMITH_PLAIN bool operator<(T a, T b) { return a.widen() < b.widen(); } \
  OPSMITH_PLAIN bool operator<=(T a, T b) { return a.widen() <= b.widen(); } \
  OPSMITH_PLAIN bool operator>(T a, T b) { return a.widen() > b.widen(); } \
  OPSMITH_PLAIN bool operator>=(T a, T b) { return a.widen() >= b.widen(); } \
  OPSMITH_PLAIN T2 operator+(T2 a, T2 b) { return T2(a.x + b.x, a.y + b.y); } \
  OPSMITH_PLAIN T2 operator-(T2 a, T2 b) { return T2(a.x - b.x, a.y - b.y); } \
  OPSMITH_PLAIN T2 operator*(T2 a, T2 b) { return T2(a.x * b.x, a.y * b.y); } \
  OPSMITH_PLAIN T2 operator/(T2 a, T2 b) { return T2(a.x / b.x, a.y / b.y); } \
  OPSMITH_PLAIN T2 operator-(T2 a) { return T2(-a.x, -a.y); } \
  OPSMITH_PLAIN T2 &operator+=(T2 &a, T2 b) { return a = a + b; } \
  OPSMITH_PLAIN T2 &operator-=(T2 &a, T2 b) { return a = a - b; } \
  OPSMITH_PLAIN T2 &operator*=(T2 &a, T2 b) { return a = a * b; } \
  OPSMITH_PLAIN T2 &operator/=(T2 &a, T2 b) { return a = a / b; } \
  OPSMITH_PLAIN bool operator==(T2 a, T2 b) { return a.x == b.x && a.y == b.y; } \
  OPSMITH_PLAIN bool operator!=(T2 a, T2 b) { return a.x != b.x && a.y != b.y; } \
  OPSMITH_HALF_BINARY(T, T2, __hadd, a.widen() + b.widen()) OPSMITH_HALF_BINARY(T, T2, __hsub, a.widen() - b.widen()) \
  OPSMITH_HALF_BINARY(T, T2, __hmul, a.widen() * b.widen()) OPSMITH_HALF_BINARY(T, T2, __hadd_rn, a.widen() + b.widen()) \
  OPSMITH_HALF_BINARY(T, T2, __hsub_rn, a.widen() - b.widen()) \
  OPSMITH_HALF_BINARY(T, T2, __hmul_rn, a.widen() * b.widen()) \
  OPSMITH_HALF_BINARY(T, T2, __hadd_sat, __saturatef(T(a.widen() + b.widen()).widen())) \
  OPSMITH_HALF_BINARY(T, T2, __hsub_sat, __saturatef(T(a.widen() - b.widen()).widen())) \
  OPSMITH_HALF_BINARY(T, T2, __hmul_sat, __saturatef(T(a.widen() * b.widen()).widen())) \
  OPSMITH_HALF_BINARY(T, T2, __hmax, fmaxf(a.widen(), b.widen())) \
  OPSMITH_HALF_BINARY(T, T2, __hmin, fminf(a.widen(), b.widen())) \
  OPSMITH_HALF_BINARY(T, T2, __hmax_nan, a.widen() != a.widen() ? a.widen() : b.widen() != b.widen() ? b.widen() : fmaxf(a.widen(), b.widen())) \
  OPSMITH_HALF_BINARY(T, T2, __hmin_nan, a.widen() != a.widen() ? a.widen() : b.widen() != b.widen() ? b.widen() : fminf(a.widen(), b.widen())) \
  OPSMITH_PLAIN T __hdiv(T a, T b) { return a / b; } \
  OPSMITH_PLAIN T2 __h2div(T2 a, T2 b) { return a / b; } \
  OPSMITH_PLAIN T __hneg(T a) { return -a; } \
  OPSMITH_PLAIN T2 __hneg2(T2 a) { return -a; } \
  OPSMITH_PLAIN T __habs(T a) { return opsmith_bits_##T((unsigned short)(a.__x & 0x7fff)); } \
  OPSMITH_PLAIN T2 __habs2(T2 a) { return T2(__habs(a.x), __habs(a.y)); } \
  OPSMITH_PLAIN T __hfma(T a, T b, T c) { \
    return opsmith_bits_##T(opsmith::fuse<opsmith::F>(a.widen(), b.widen(), c.widen())); \
  } \
  OPSMITH_PLAIN T __hfma_relu(T a, T b, T c) { T r = __hfma(a, b, c); return r.widen() > 0 ? r : T(0.0f); } \
  OPSMITH_PLAIN T __hfma_sat(T a, T b, T c) { return T(__saturatef(__hfma(a, b, c).widen())); } \
  OPSMITH_PLAIN T2 __hfma2(T2 a, T2 b, T2 c) { return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); } \
  OPSMITH_PLAIN T2 __hfma2_relu(T2 a, T2 b, T2 c) { return T2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)); } \
  OPSMITH_HALF_COMPARE(T, T2, eq, ==) OPSMITH_HALF_COMPARE(T, T2, ne, !=) OPSMITH_HALF_COMPARE(T, T2, lt, <) \
  OPSMITH_HALF_COMPARE(T, T2, le, <=) OPSMITH_HALF_COMPARE(T, T2, gt, >) OPSMITH_HALF_COMPARE(T, T2, ge, >=) \
  OPSMITH_PLAIN bool __hisnan(T a) { return a.widen() != a.widen(); } \
  OPSMITH_PLAIN int __hisinf(T a) { return __builtin_isinf(a.widen()) ? (a.widen() > 0 ? 1 : -1) : 0; } \
  OPSMITH_HALF_UNARY(T, T2, exp, expf(v)) OPSMITH_HALF_UNARY(T, T2, exp2, exp2f(v)) OPSMITH_HALF_UNARY(T, T2, exp10, exp10f(v)) \
  OPSMITH_HALF_UNARY(T, T2, log, logf(v)) OPSMITH_HALF_UNARY(T, T2, log2, log2f(v)) OPSMITH_HALF_UNARY(T, T2, log10, log10f(v)) \
  OPSMITH_HALF_UNARY(T, T2, sqrt, sqrtf(v)) OPSMITH_HALF_UNARY(T, T2, rsqrt, rsqrtf(v)) OPSMITH_HALF_UNARY(T, T2, rcp, 1.0f / v) \
  OPSMITH_HALF_UNARY(T, T2, sin, sinf(v)) OPSMITH_HALF_UNARY(T, T2, cos, cosf(v)) OPSMITH_HALF_UNARY(T, T2, tanh, tanhf(v)) \
  OPSMITH_HALF_UNARY(T, T2, floor, floorf(v)) OPSMITH_HALF_UNARY(T, T2, ceil, ceilf(v)) OPSMITH_HALF_UNARY(T, T2, rint, rintf(v)) \
  OPSMITH_HALF_UNARY(T, T2, trunc, truncf(v)) \
  OPSMITH_PLAIN T __lows(T2 a) { return a.x; }
#define OPSMITH_HALF_BINARY(T, T2, name, expression) \
  OPSMITH_PLAIN T name(T a, T b) { return T((float)(expression)); } \
  OPSMITH_PLAIN T2 OPSMITH_PAIR(name)(T2 a, T2 b) { return T2(name(a.x, b.x), name(a.y, b.y)); }
#define OPSMITH_PAIR(name) OPSMITH_PAIR_##name
#define OPSMITH_PAIR___hadd __hadd2
#define OPSMITH_PAIR___hsub __hsub2
#define OPSMITH_PAIR___hmul __hmul2
#define OPSMITH_PAIR___hadd_rn __hadd2_rn
#define OPSMITH_PAIR___hsub_rn __hsub2_rn
#define OPSMITH_PAIR___hmul_rn __hmul2_rn
#define OPSMITH_PAIR___hadd_sat __hadd2_sat
#define OPSMITH_PAIR___hsub_sat __hsub2_sat
#define OPSMITH_PAIR___hmul_sat __hmul2_sat
#define OPSMITH_PAIR___hmax __hmax2
#define OPSMITH_PAIR___hmin __hmin2
#define OPSMITH_PAIR___hmax_nan __hmax2_nan
#define OPSMITH_PAIR___hmin_nan __hmin2_nan
#define OPSMITH_HALF_COMPARE(T, T2, name, op) \
  OPSMITH_PLAIN bool __h##name(T a, T b) { return a.widen() op b.widen(); } \
  OPSMITH_PLAIN bool __h##name##u(T a, T b) { \
    return a.widen() op b.widen() || a.widen() != a.widen() || b.widen() != b.widen(); \
  } \
  OPSMITH_PLAIN T2 __h##name##2(T2 a, T2 b) { return T2(T(a.x op b.x ? 1.0f : 0.0f), T(a.y op b.y ? 1.0f : 0.0f)); } \
  OPSMITH_PLAIN bool __hb##name##2(T2 a, T2 b) { return a.x op b.x && a.y op b.y; } \
  OPSMITH_PLAIN unsigned __h##name##2_mask(T2 a, T2 b) { return (a.x op b.x ? 0xffffu : 0) | (a.y op b.y ? 0xffff0000u : 0); }
#define OPSMITH_HALF_UNARY(T, T2, name, expression) \
  OPSMITH_PLAIN T h##name(T a) { float v = a.widen(); return T((float)(expression)); } \
  OPSMITH_PLAIN T2 h2##name(T2 a) { return T2(h##name(a.x), h##name(a.y)); }

OPSMITH_TYPE(__half, __half2, Fp16, __half_raw, __half2_raw)
OPSMITH_TYPE(__nv_bfloat16, __nv_bfloat162, Bf16, __nv_bfloat16_raw, __nv_bfloat162_raw)
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#define OPSMITH_CONVERT(T, T2, F, half, half2) \
  OPSMITH_PLAIN T __float2##half(float x) { return T(x); } \
  OPSMITH_PLAIN T __float2##half##_rn(float x) { return T(x); } \
  OPSMITH_PLAIN T __float2##half##_rz(float x) { return opsmith_bits_##T(opsmith::F::round((double)x, opsmith::ZERO)); } \
  OPSMITH_PLAIN T __float2##half##_ru(float x) { return opsmith_bits_##T(opsmith::F::round((double)x, opsmith::UP)); } \
  OPSMITH_PLAIN T __float2##half##_rd(float x) { return opsmith_bits_##T(opsmith::F::round((double)x, opsmith::DOWN)); } \
  OPSMITH_PLAIN T __double2##half(double x) { return T(x); } \
  OPSMITH_PLAIN float __##half##2float(T x) { return x.widen(); } \
  OPSMITH_PLAIN T2 __float2##half2##_rn(float x) { return T2(T(x), T(x)); } \
  OPSMITH_PLAIN T2 __floats2##half2##_rn(float x, float y) { return T2(T(x), T(y)); } \
  OPSMITH_PLAIN T2 __float22##half2##_rn(float2 v) { return T2(T(v.x), T(v.y)); } \
  OPSMITH_PLAIN float2 __##half2##2float2(T2 v) { return float2{v.x.widen(), v.y.widen()}; } \
  OPSMITH_PLAIN T2 __##half##2##half2(T x) { return T2(x, x); } \
  OPSMITH_PLAIN T2 make_##half2(T x, T y) { return T2(x, y); } \
  OPSMITH_PLAIN int __##half##2int_rn(T x) { return __float2int_rn(x.widen()); } \
  OPSMITH_PLAIN int __##half##2int_rz(T x) { return __float2int_rz(x.widen()); } \
  OPSMITH_PLAIN int __##half##2int_rd(T x) { return __float2int_rd(x.widen()); } \
  OPSMITH_PLAIN int __##half##2int_ru(T x) { return __float2int_ru(x.widen()); } \
  OPSMITH_PLAIN unsigned __##half##2uint_rn(T x) { return __float2uint_rn(x.widen()); } \
  OPSMITH_PLAIN T __int2##half##_rn(int x) { return T(x); } \
  OPSMITH_PLAIN T __uint2##half##_rn(unsigned x) { return T(x); } \
  OPSMITH_PLAIN T __ll2##half##_rn(long long x) { return T(x); } \
  OPSMITH_PLAIN T __short2##half##_rn(short x) { return T(x); } \
  OPSMITH_PLAIN unsigned short __##half##_as_ushort(T x) { return x.__x; } \
  OPSMITH_PLAIN short __##half##_as_short(T x) { return (short)x.__x; } \
  OPSMITH_PLAIN T __ushort_as_##half(unsigned short x) { return opsmith_bits_##T(x); } \
  OPSMITH_PLAIN T __short_as_##half(short x) { return opsmith_bits_##T((unsigned short)x); }
OPSMITH_CONVERT(__half, __half2, Fp16, half, half2)
OPSMITH_CONVERT(__nv_bfloat16, __nv_bfloat162, Bf16, bfloat16, bfloat162)
#define OPSMITH_PAIRS(T, T2, S, half, half2) \
  OPSMITH_PLAIN T __low2##half(T2 v) { return v.x; } \
  OPSMITH_PLAIN T __high2##half(T2 v) { return v.y; } \
  OPSMITH_PLAIN T2 __low2##half2(T2 v) { return T2(v.x, v.x); } \
  OPSMITH_PLAIN T2 __high2##half2(T2 v) { return T2(v.y, v.y); } \
  OPSMITH_PLAIN T2 __lows2##half2(T2 a, T2 b) { return T2(a.x, b.x); } \
  OPSMITH_PLAIN T2 __highs2##half2(T2 a, T2 b) { return T2(a.y, b.y); } \
  OPSMITH_PLAIN T2 __##S##2##half2(T a, T b) { return T2(a, b); } \
  OPSMITH_PLAIN float __low2float(T2 v) { return v.x.widen(); } \
  OPSMITH_PLAIN float __high2float(T2 v) { return v.y.widen(); } \
  OPSMITH_PLAIN T2 __lowhigh2highlow(T2 v) { return T2(v.y, v.x); }
OPSMITH_PAIRS(__half, __half2, halves, half, half2)
OPSMITH_PAIRS(__nv_bfloat16, __nv_bfloat162, halves, bfloat16, bfloat162)
