// Functions of numbers: overloads for float and integers, intrinsics, and those that libm does not have.
#pragma once

#define OPSMITH_UNARY(name) \
  OPSMITH_PLAIN float name(float x) { return name##f(x); } \
  template <class T, class = typename opsmith::If<opsmith::IsInteger<T>::value>::type> OPSMITH_PLAIN double name(T x) { \
    return name((double)x); \
  }
OPSMITH_UNARY(exp) OPSMITH_UNARY(exp2) OPSMITH_UNARY(exp10) OPSMITH_UNARY(expm1) OPSMITH_UNARY(log) OPSMITH_UNARY(log2)
OPSMITH_UNARY(log10) OPSMITH_UNARY(log1p) OPSMITH_UNARY(sqrt) OPSMITH_UNARY(cbrt) OPSMITH_UNARY(sin) OPSMITH_UNARY(cos)
OPSMITH_UNARY(tan) OPSMITH_UNARY(asin) OPSMITH_UNARY(acos) OPSMITH_UNARY(atan) OPSMITH_UNARY(sinh) OPSMITH_UNARY(cosh)
OPSMITH_UNARY(tanh) OPSMITH_UNARY(asinh) OPSMITH_UNARY(acosh) OPSMITH_UNARY(atanh) OPSMITH_UNARY(erf)
OPSMITH_UNARY(erfc) OPSMITH_UNARY(tgamma) OPSMITH_UNARY(lgamma) OPSMITH_UNARY(floor) OPSMITH_UNARY(ceil)
OPSMITH_UNARY(trunc) OPSMITH_UNARY(round) OPSMITH_UNARY(rint) OPSMITH_UNARY(nearbyint) OPSMITH_UNARY(fabs)
OPSMITH_UNARY(logb)
#define OPSMITH_BINARY(name) \
  OPSMITH_PLAIN float name(float x, float y) { return name##f(x, y); } \
  OPSMITH_PLAIN double name(float x, double y) { return name((double)x, y); } \
  OPSMITH_PLAIN double name(double x, float y) { return name(x, (double)y); }
OPSMITH_BINARY(hypot) OPSMITH_BINARY(atan2) OPSMITH_BINARY(fmod) OPSMITH_BINARY(remainder) OPSMITH_BINARY(fmax)
OPSMITH_BINARY(fmin) OPSMITH_BINARY(fdim) OPSMITH_BINARY(copysign) OPSMITH_BINARY(nextafter) OPSMITH_BINARY(pow)
OPSMITH_PLAIN float pow(float x, int y) { return powf(x, (float)y); }
OPSMITH_PLAIN double pow(double x, int y) { return pow(x, (double)y); }
OPSMITH_PLAIN float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
OPSMITH_PLAIN float ldexp(float x, int e) { return ldexpf(x, e); }
OPSMITH_PLAIN float scalbn(float x, int e) { return scalbnf(x, e); }
OPSMITH_PLAIN float frexp(float x, int *e) { return frexpf(x, e); }
OPSMITH_PLAIN float modf(float x, float *i) { return modff(x, i); }
OPSMITH_PLAIN long lrint(float x) { return lrintf(x); }
OPSMITH_PLAIN long lround(float x) { return lroundf(x); }
OPSMITH_PLAIN long long llrint(float x) { return llrintf(x); }
OPSMITH_PLAIN int ilogb(float x) { return ilogbf(x); }

OPSMITH_PLAIN float rsqrtf(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }
OPSMITH_PLAIN double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
OPSMITH_PLAIN float rsqrt(float x) { return rsqrtf(x); }
OPSMITH_PLAIN float rcbrtf(float x) { return (float)(1.0 / cbrt((double)x)); }
OPSMITH_PLAIN double rcbrt(double x) { return 1.0 / cbrt(x); }
OPSMITH_PLAIN float rhypotf(float x, float y) { return (float)(1.0 / hypot((double)x, (double)y)); }
OPSMITH_PLAIN float norm3df(float a, float b, float c) {
  return (float)__builtin_sqrt((double)a * a + (double)b * b + (double)c * c);
}
OPSMITH_PLAIN float norm4df(float a, float b, float c, float d) {
  return (float)__builtin_sqrt((double)a * a + (double)b * b + (double)c * c + (double)d * d);
}
OPSMITH_PLAIN float rnorm3df(float a, float b, float c) { return (float)(1.0 / norm3df(a, b, c)); }
OPSMITH_PLAIN double sinpi(double x) { return sin(3.14159265358979323846 * fmod(x, 2.0)); }
OPSMITH_PLAIN double cospi(double x) { return cos(3.14159265358979323846 * fmod(x, 2.0)); }
OPSMITH_PLAIN float sinpif(float x) { return (float)sinpi((double)x); }
OPSMITH_PLAIN float cospif(float x) { return (float)cospi((double)x); }
OPSMITH_PLAIN double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
OPSMITH_PLAIN float normcdff(float x) { return (float)normcdf((double)x); }
OPSMITH_PLAIN double erfcx(double x) { return exp(x * x) * erfc(x); }
OPSMITH_PLAIN float erfcxf(float x) { return (float)erfcx((double)x); }
OPSMITH_PLAIN void sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
OPSMITH_PLAIN void sincos(double x, double *s, double *c) { *s = sin(x), *c = cos(x); }
OPSMITH_PLAIN void sincos(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
OPSMITH_PLAIN void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }

OPSMITH_PLAIN int abs(int x) { return x < 0 ? -x : x; }
OPSMITH_PLAIN long abs(long x) { return x < 0 ? -x : x; }
OPSMITH_PLAIN long long abs(long long x) { return x < 0 ? -x : x; }
OPSMITH_PLAIN long labs(long x) { return x < 0 ? -x : x; }
OPSMITH_PLAIN long long llabs(long long x) { return x < 0 ? -x : x; }
OPSMITH_PLAIN float abs(float x) { return __builtin_fabsf(x); }
OPSMITH_PLAIN double abs(double x) { return __builtin_fabs(x); }
template <class T> OPSMITH_PLAIN bool isnan(T x) { return __builtin_isnan(x); }
template <class T> OPSMITH_PLAIN bool isinf(T x) { return __builtin_isinf(x); }
template <class T> OPSMITH_PLAIN bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T> OPSMITH_PLAIN bool signbit(T x) { return __builtin_signbit(x); }
OPSMITH_PLAIN int __isnanf(float x) { return __builtin_isnan(x); }
OPSMITH_PLAIN int __isinff(float x) { return __builtin_isinf(x); }
OPSMITH_PLAIN int __finitef(float x) { return __builtin_isfinite(x); }
OPSMITH_PLAIN float nanf(const char *) { return __builtin_nanf(""); }
OPSMITH_PLAIN double nan(const char *) { return __builtin_nan(""); }

#define OPSMITH_LEAST(A, B, R) \
  OPSMITH_PLAIN R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; } \
  OPSMITH_PLAIN R max(A a, B b) { return (R)a > (R)b ? (R)a : (R)b; }
OPSMITH_LEAST(int, int, int) OPSMITH_LEAST(unsigned, unsigned, unsigned) OPSMITH_LEAST(int, unsigned, unsigned)
OPSMITH_LEAST(unsigned, int, unsigned) OPSMITH_LEAST(long, long, long)
OPSMITH_LEAST(unsigned long, unsigned long, unsigned long) OPSMITH_LEAST(long, unsigned long, unsigned long)
OPSMITH_LEAST(unsigned long, long, unsigned long) OPSMITH_LEAST(long long, long long, long long)
OPSMITH_LEAST(unsigned long long, unsigned long long, unsigned long long)
OPSMITH_LEAST(long long, unsigned long long, unsigned long long)
OPSMITH_LEAST(unsigned long long, long long, unsigned long long)
#define OPSMITH_LEAST_REAL(A, B, R) \
  OPSMITH_PLAIN R min(A a, B b) { return fmin((R)a, (R)b); } \
  OPSMITH_PLAIN R max(A a, B b) { return fmax((R)a, (R)b); }
OPSMITH_LEAST_REAL(float, float, float) OPSMITH_LEAST_REAL(double, double, double)
OPSMITH_LEAST_REAL(float, double, double) OPSMITH_LEAST_REAL(double, float, double)
OPSMITH_PLAIN unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
OPSMITH_PLAIN unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }
OPSMITH_PLAIN long long llmin(long long a, long long b) { return a < b ? a : b; }
OPSMITH_PLAIN long long llmax(long long a, long long b) { return a > b ? a : b; }

OPSMITH_PLAIN float __expf(float x) { return expf(x); }
OPSMITH_PLAIN float __exp10f(float x) { return exp10f(x); }
OPSMITH_PLAIN float __logf(float x) { return logf(x); }
OPSMITH_PLAIN float __log2f(float x) { return log2f(x); }
OPSMITH_PLAIN float __log10f(float x) { return log10f(x); }
OPSMITH_PLAIN float __powf(float x, float y) { return powf(x, y); }
OPSMITH_PLAIN float __sinf(float x) { return sinf(x); }
OPSMITH_PLAIN float __cosf(float x) { return cosf(x); }
OPSMITH_PLAIN float __tanf(float x) { return tanf(x); }
OPSMITH_PLAIN float __tanhf(float x) { return tanhf(x); }
OPSMITH_PLAIN void __sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
OPSMITH_PLAIN float fdividef(float x, float y) { return x / y; }
OPSMITH_PLAIN float __fdividef(float x, float y) {
  return __builtin_fabsf(y) > 0x1p126f && __builtin_isfinite(x) && __builtin_isfinite(y) ? 0.0f * x : x / y;
}
OPSMITH_PLAIN float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1.0f : 0.0f; }
OPSMITH_PLAIN float saturate(float x) { return __saturatef(x); }

namespace opsmith {
// The rounding of a sum, product or quotient that double holds exactly, or nearly: steps from nearest where needed.
template <class T> OPSMITH_PLAIN T keep(T x) {
  __asm__("" : "+x"(x));  // no contraction into what follows
  return x;
}
OPSMITH_PLAIN float toward_zero(double x) {
  float r = (float)x;
  return __builtin_fabs((double)r) > __builtin_fabs(x) ? nextafterf(r, 0.0f) : r;
}
OPSMITH_PLAIN float upward(double x) {
  float r = (float)x;
  return (double)r < x ? nextafterf(r, __builtin_inff()) : r;
}
OPSMITH_PLAIN float downward(double x) {
  float r = (float)x;
  return (double)r > x ? nextafterf(r, -__builtin_inff()) : r;
}
}  // namespace opsmith
#if !defined(__x86_64__)
#define OPSMITH_KEEP(x) ([&] { volatile auto opsmith_kept = (x); return opsmith_kept; }())
#else
#define OPSMITH_KEEP(x) opsmith::keep(x)
#endif
OPSMITH_PLAIN float __fadd_rn(float a, float b) { return OPSMITH_KEEP(OPSMITH_KEEP(a) + b); }
OPSMITH_PLAIN float __fsub_rn(float a, float b) { return OPSMITH_KEEP(OPSMITH_KEEP(a) - b); }
OPSMITH_PLAIN float __fmul_rn(float a, float b) { return OPSMITH_KEEP(a * b); }
OPSMITH_PLAIN float __fdiv_rn(float a, float b) { return a / b; }
OPSMITH_PLAIN float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
OPSMITH_PLAIN float __fmaf_ieee_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
OPSMITH_PLAIN float __frcp_rn(float a) { return 1.0f / a; }
OPSMITH_PLAIN float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
OPSMITH_PLAIN float __frsqrt_rn(float a) { return rsqrtf(a); }
#define OPSMITH_ROUNDED(suffix, direction) \
  OPSMITH_PLAIN float __fadd_##suffix(float a, float b) { return opsmith::direction((double)a + b); } \
  OPSMITH_PLAIN float __fsub_##suffix(float a, float b) { return opsmith::direction((double)a - b); } \
  OPSMITH_PLAIN float __fmul_##suffix(float a, float b) { return opsmith::direction((double)a * b); } \
  OPSMITH_PLAIN float __fdiv_##suffix(float a, float b) { return opsmith::direction((double)a / b); } \
  OPSMITH_PLAIN float __fsqrt_##suffix(float a) { return opsmith::direction(__builtin_sqrt((double)a)); } \
  OPSMITH_PLAIN float __frcp_##suffix(float a) { return opsmith::direction(1.0 / a); } \
  OPSMITH_PLAIN float __fmaf_##suffix(float a, float b, float c) { return opsmith::direction((double)a * b + c); } \
  OPSMITH_PLAIN float __double2float_##suffix(double x) { return opsmith::direction(x); } \
  OPSMITH_PLAIN float __int2float_##suffix(int x) { return opsmith::direction((double)x); } \
  OPSMITH_PLAIN float __uint2float_##suffix(unsigned x) { return opsmith::direction((double)x); }
OPSMITH_ROUNDED(rz, toward_zero) OPSMITH_ROUNDED(ru, upward) OPSMITH_ROUNDED(rd, downward)
OPSMITH_PLAIN double __dadd_rn(double a, double b) { return OPSMITH_KEEP(OPSMITH_KEEP(a) + b); }
OPSMITH_PLAIN double __dsub_rn(double a, double b) { return OPSMITH_KEEP(OPSMITH_KEEP(a) - b); }
OPSMITH_PLAIN double __dmul_rn(double a, double b) { return OPSMITH_KEEP(a * b); }
OPSMITH_PLAIN double __ddiv_rn(double a, double b) { return a / b; }
OPSMITH_PLAIN double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
OPSMITH_PLAIN double __drcp_rn(double a) { return 1.0 / a; }
OPSMITH_PLAIN double __dsqrt_rn(double a) { return __builtin_sqrt(a); }

namespace opsmith {  // conversions saturate on the device, and NaN becomes 0
template <class To> OPSMITH_PLAIN To saturated(double x, double least, double most, To lowest, To highest) {
  return __builtin_isnan(x) ? (To)0 : x <= least ? lowest : x >= most ? highest : (To)x;
}
}  // namespace opsmith
#define OPSMITH_TO_INTEGER(suffix, rounding) \
  OPSMITH_PLAIN int __float2int_##suffix(float x) { \
    return opsmith::saturated<int>(rounding((double)x), -2147483648.0, 2147483647.0, INT_MIN, INT_MAX); \
  } \
  OPSMITH_PLAIN unsigned __float2uint_##suffix(float x) { \
    return opsmith::saturated<unsigned>(rounding((double)x), 0.0, 4294967295.0, 0u, UINT_MAX); \
  } \
  OPSMITH_PLAIN long long __float2ll_##suffix(float x) { \
    return opsmith::saturated<long long>(rounding((double)x), -0x1p63, 0x1p63, LLONG_MIN, LLONG_MAX); \
  } \
  OPSMITH_PLAIN unsigned long long __float2ull_##suffix(float x) { \
    return opsmith::saturated<unsigned long long>(rounding((double)x), 0.0, 0x1p64, 0ull, ULLONG_MAX); \
  } \
  OPSMITH_PLAIN int __double2int_##suffix(double x) { \
    return opsmith::saturated<int>(rounding(x), -2147483648.0, 2147483647.0, INT_MIN, INT_MAX); \
  } \
  OPSMITH_PLAIN unsigned __double2uint_##suffix(double x) { \
    return opsmith::saturated<unsigned>(rounding(x), 0.0, 4294967295.0, 0u, UINT_MAX); \
  } \
  OPSMITH_PLAIN long long __double2ll_##suffix(double x) { \
    return opsmith::saturated<long long>(rounding(x), -0x1p63, 0x1p63, LLONG_MIN, LLONG_MAX); \
  } \
  OPSMITH_PLAIN unsigned long long __double2ull_##suffix(double x) { \
    return opsmith::saturated<unsigned long long>(rounding(x), 0.0, 0x1p64, 0ull, ULLONG_MAX); \
  }
OPSMITH_TO_INTEGER(rn, __builtin_rint) OPSMITH_TO_INTEGER(rz, __builtin_trunc) OPSMITH_TO_INTEGER(rd, __builtin_floor)
OPSMITH_TO_INTEGER(ru, __builtin_ceil)
OPSMITH_PLAIN float __int2float_rn(int x) { return (float)x; }
OPSMITH_PLAIN float __uint2float_rn(unsigned x) { return (float)x; }
OPSMITH_PLAIN float __ll2float_rn(long long x) { return (float)x; }
OPSMITH_PLAIN float __ull2float_rn(unsigned long long x) { return (float)x; }
OPSMITH_PLAIN float __double2float_rn(double x) { return (float)x; }
OPSMITH_PLAIN double __int2double_rn(int x) { return x; }
OPSMITH_PLAIN double __uint2double_rn(unsigned x) { return x; }
OPSMITH_PLAIN double __ll2double_rn(long long x) { return (double)x; }

#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __builtin_nan("")
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_MAX_NORMAL_F 3.402823466e38f
#define CUDART_MIN_DENORM_F 1.401298464e-45f
#define CUDART_SQRT_TWO_F 1.414213562f
#define CUDART_SQRT_HALF_F 0.707106781f
#define CUDART_L2E_F 1.442695041f
#define CUDART_LN2_F 0.693147181f

namespace std {
using ::abs; using ::acos; using ::asin; using ::atan; using ::atan2; using ::cbrt; using ::ceil; using ::cos; using ::cosh;
using ::erf; using ::erfc; using ::exp; using ::exp2; using ::expm1; using ::fabs; using ::floor; using ::fma; using ::fmax;
using ::fmin; using ::fmod; using ::hypot; using ::isfinite; using ::isinf; using ::isnan; using ::log; using ::log10;
using ::log1p; using ::log2; using ::pow; using ::rint; using ::round; using ::sin; using ::sinh; using ::sqrt; using ::tan;
using ::tanh; using ::trunc; using ::lround; using ::lrint; using ::nearbyint; using ::copysign; using ::signbit;
using ::size_t; using ::ptrdiff_t; using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::uint8_t;
using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t; using ::intptr_t;
template <class T> constexpr const T &max(const T &a, const T &b) { return a < b ? b : a; }
template <class T> constexpr const T &min(const T &a, const T &b) { return b < a ? b : a; }
template <class A, class B> struct is_same { static constexpr bool value = opsmith::IsSame<A, B>::value; };
template <class A, class B> inline constexpr bool is_same_v = opsmith::IsSame<A, B>::value;
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F> struct conditional { typedef T type; };
template <class T, class F> struct conditional<false, T, F> { typedef F type; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class T> struct numeric_limits {};
#define OPSMITH_LIMITS(T, LEAST, MOST, LOWEST, EPSILON) \
  template <> struct numeric_limits<T> { \
    static constexpr T min() { return LEAST; } \
    static constexpr T max() { return MOST; } \
    static constexpr T lowest() { return LOWEST; } \
    static constexpr T epsilon() { return EPSILON; } \
    static constexpr T infinity() { return (T)(opsmith::IsInteger<T>::value ? 0 : __builtin_inf()); } \
    static constexpr T quiet_NaN() { return (T)(opsmith::IsInteger<T>::value ? 0 : __builtin_nan("")); } \
  };
OPSMITH_LIMITS(float, FLT_MIN, FLT_MAX, -FLT_MAX, FLT_EPSILON) OPSMITH_LIMITS(double, DBL_MIN, DBL_MAX, -DBL_MAX, DBL_EPSILON)
OPSMITH_LIMITS(int, INT_MIN, INT_MAX, INT_MIN, 0) OPSMITH_LIMITS(unsigned, 0, UINT_MAX, 0, 0)
OPSMITH_LIMITS(long, LONG_MIN, LONG_MAX, LONG_MIN, 0) OPSMITH_LIMITS(long long, LLONG_MIN, LLONG_MAX, LLONG_MIN, 0)
OPSMITH_LIMITS(unsigned long, 0, ~0ul, 0, 0) OPSMITH_LIMITS(unsigned long long, 0, ULLONG_MAX, 0, 0)
}  // namespace std
