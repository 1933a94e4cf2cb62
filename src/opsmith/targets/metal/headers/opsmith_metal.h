// Metal's words, types and functions. Read twice: as C++ for OpenCL, where the compiler only looks at a program
// (address spaces are types there, and functions have no bodies), and as C++ over the runtime, where it is built.
#pragma once

#ifdef __OPENCL_CPP_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define OPSMITH_BODY(...) ;
#define OPSMITH_INTO(...) ;
#define OPSMITH_PLAIN static inline
#define OPSMITH_LINE int opsmith_line = 0
#define OPSMITH_SPACES(X) X(__global) X(__local)
#define device __global
#define threadgroup __local
#define thread __private
#define constant const __constant
#define OPSMITH_CONSTANT [[clang::require_constant_initialization]] constant
#define kernel __kernel
#define local local_  // names that are no words of Metal
#define global global_
#define generic generic_
#define atomic_int metal_atomic_int  // which OpenCL has too
#define atomic_uint metal_atomic_uint
#define atomic_float metal_atomic_float
#define atomic_ulong metal_atomic_ulong
typedef __SIZE_TYPE__ size_t;
namespace opsmith {
template <class T> struct Same { typedef T type; };
template <class T> using Exactly = typename Same<T>::type;
}  // namespace opsmith
#else
#include "opsmith_runtime.h"
#include "opsmith_call.h"
#define OPSMITH_BODY(...) { __VA_ARGS__ }
#define OPSMITH_INTO(...) : __VA_ARGS__ {}
#define OPSMITH_SPACES(X) X()
#define OPSMITH_SHARED static OPSMITH_SECTION(__COUNTER__)
#define device
#define threadgroup
#define thread
#define constant const
#define OPSMITH_CONSTANT [[clang::require_constant_initialization]] constant
#define kernel static
typedef _Float16 half;
OPSMITH_PLAIN half operator""h(long double value) { return (half)value; }
#endif
#define OPSMITH_EACH(i, N) for (int i = 0; i < N; i++)
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __bf16 bfloat;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t, uchar;
typedef unsigned short uint16_t, ushort;
typedef unsigned int uint32_t, uint;
typedef unsigned long uint64_t, ulong;

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define MAXFLOAT __FLT_MAX__
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define HALF_MAX 65504.0h
#define HALF_MIN 6.103515625e-05h
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 0x7fffffff
#define INT_MIN (-0x7fffffff - 1)
#define UINT_MAX 0xffffffffu
#define LONG_MAX 0x7fffffffffffffffl
#define LONG_MIN (-0x7fffffffffffffffl - 1)
#define ULONG_MAX 0xfffffffffffffffful
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.78539816339744830962f
#define M_1_PI_F 0.31830988618379067154f
#define M_2_PI_F 0.63661977236758134308f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f
#define M_E_F 2.7182818284590452354f
#define M_LOG2E_F 1.4426950408889634074f
#define M_LOG10E_F 0.43429448190325182765f
#define M_LN2_F 0.69314718055994530942f
#define M_LN10_F 2.30258509299404568402f

namespace metal {

// -- vectors

template <class T, int N> using vec = T __attribute__((ext_vector_type(N)));
#define OPSMITH_VECTORS(T) typedef vec<T, 2> T##2; typedef vec<T, 3> T##3; typedef vec<T, 4> T##4;
OPSMITH_VECTORS(char) OPSMITH_VECTORS(uchar) OPSMITH_VECTORS(short) OPSMITH_VECTORS(ushort) OPSMITH_VECTORS(int)
OPSMITH_VECTORS(uint) OPSMITH_VECTORS(long) OPSMITH_VECTORS(ulong) OPSMITH_VECTORS(float) OPSMITH_VECTORS(half)
OPSMITH_VECTORS(bfloat)

template <class T, int N> struct packed_vec;
template <class V> struct OpsmithShape { typedef V element; static constexpr int size = 1; };
template <class T, int N> struct OpsmithShape<vec<T, N>> { typedef T element; static constexpr int size = N; };
template <class T, int N> struct OpsmithShape<packed_vec<T, N>> { typedef T element; static constexpr int size = N; };

template <class T, int N, class A> OPSMITH_PLAIN vec<T, N> opsmith_convert(A value) OPSMITH_BODY(
  if constexpr (OpsmithShape<A>::size == 1) return (vec<T, N>)(T)value;
  else {
    vec<T, N> result;
    OPSMITH_EACH(i, N) result[i] = (T)value[i];
    return result;
  })
template <class T, int N, class A> OPSMITH_PLAIN void opsmith_put(thread vec<T, N> &result, thread int &place, A value) OPSMITH_BODY(
  if constexpr (OpsmithShape<A>::size == 1) result[place++] = (T)value;
  else OPSMITH_EACH(i, OpsmithShape<A>::size) result[place++] = (T)value[i];)
// `float4(a, b, c)`: a type, when brackets follow its name
template <class T, int N, class... A> OPSMITH_PLAIN vec<T, N> opsmith_vector(A... values) {
  static_assert(sizeof...(A) > 0, "a vector of no components: write T(0)");
  constexpr int count = (OpsmithShape<A>::size + ... + 0);
  static_assert(count == N || (sizeof...(A) == 1 && count == 1), "components that do not add up to those of the vector");
#ifdef __OPENCL_CPP_VERSION__
  return vec<T, N>{};
#else
  if constexpr (sizeof...(A) == 1) return opsmith_convert<T, N>(values...);
  else {
    vec<T, N> result;
    int place = 0;
    (opsmith_put<T, N>(result, place, values), ...);
    return result;
  }
#endif
}
#define char2(...) opsmith_vector<char, 2>(__VA_ARGS__)
#define char3(...) opsmith_vector<char, 3>(__VA_ARGS__)
#define char4(...) opsmith_vector<char, 4>(__VA_ARGS__)
#define uchar2(...) opsmith_vector<uchar, 2>(__VA_ARGS__)
#define uchar3(...) opsmith_vector<uchar, 3>(__VA_ARGS__)
#define uchar4(...) opsmith_vector<uchar, 4>(__VA_ARGS__)
#define short2(...) opsmith_vector<short, 2>(__VA_ARGS__)
#define short3(...) opsmith_vector<short, 3>(__VA_ARGS__)
#define short4(...) opsmith_vector<short, 4>(__VA_ARGS__)
#define ushort2(...) opsmith_vector<ushort, 2>(__VA_ARGS__)
#define ushort3(...) opsmith_vector<ushort, 3>(__VA_ARGS__)
#define ushort4(...) opsmith_vector<ushort, 4>(__VA_ARGS__)
#define int2(...) opsmith_vector<int, 2>(__VA_ARGS__)
#define int3(...) opsmith_vector<int, 3>(__VA_ARGS__)
#define int4(...) opsmith_vector<int, 4>(__VA_ARGS__)
#define uint2(...) opsmith_vector<uint, 2>(__VA_ARGS__)
#define uint3(...) opsmith_vector<uint, 3>(__VA_ARGS__)
#define uint4(...) opsmith_vector<uint, 4>(__VA_ARGS__)
#define long2(...) opsmith_vector<long, 2>(__VA_ARGS__)
#define long3(...) opsmith_vector<long, 3>(__VA_ARGS__)
#define long4(...) opsmith_vector<long, 4>(__VA_ARGS__)
#define ulong2(...) opsmith_vector<ulong, 2>(__VA_ARGS__)
#define ulong3(...) opsmith_vector<ulong, 3>(__VA_ARGS__)
#define ulong4(...) opsmith_vector<ulong, 4>(__VA_ARGS__)
#define float2(...) opsmith_vector<float, 2>(__VA_ARGS__)
#define float3(...) opsmith_vector<float, 3>(__VA_ARGS__)
#define float4(...) opsmith_vector<float, 4>(__VA_ARGS__)
#define half2(...) opsmith_vector<half, 2>(__VA_ARGS__)
#define half3(...) opsmith_vector<half, 3>(__VA_ARGS__)
#define half4(...) opsmith_vector<half, 4>(__VA_ARGS__)
#define bfloat2(...) opsmith_vector<bfloat, 2>(__VA_ARGS__)
#define bfloat3(...) opsmith_vector<bfloat, 3>(__VA_ARGS__)
#define bfloat4(...) opsmith_vector<bfloat, 4>(__VA_ARGS__)

#define OPSMITH_PACKED(N, FIELDS) \
  template <class T> struct packed_vec<T, N> { \
    T FIELDS; \
    packed_vec() = default; \
    packed_vec(vec<T, N> value) OPSMITH_BODY(OPSMITH_EACH(i, N) (&x)[i] = value[i];) \
    operator vec<T, N>() const OPSMITH_BODY(vec<T, N> value; OPSMITH_EACH(i, N) value[i] = (&x)[i]; return value;) \
    T operator[](int i) const OPSMITH_BODY(return (&x)[i];) \
  };
OPSMITH_PACKED(2, x; T y) OPSMITH_PACKED(3, x; T y; T z) OPSMITH_PACKED(4, x; T y; T z; T w)
#define OPSMITH_PACKED_NAMES(T) \
  typedef packed_vec<T, 2> packed_##T##2; typedef packed_vec<T, 3> packed_##T##3; typedef packed_vec<T, 4> packed_##T##4;
OPSMITH_PACKED_NAMES(char) OPSMITH_PACKED_NAMES(uchar) OPSMITH_PACKED_NAMES(short) OPSMITH_PACKED_NAMES(ushort)
OPSMITH_PACKED_NAMES(int) OPSMITH_PACKED_NAMES(uint) OPSMITH_PACKED_NAMES(float) OPSMITH_PACKED_NAMES(half)

template <class To, class From> OPSMITH_PLAIN To as_type(From value) {
  static_assert(sizeof(To) == sizeof(From), "as_type: types of different sizes");
#ifdef __OPENCL_CPP_VERSION__
  return To{};
#else
  return opsmith::cast_bits<To>(value);
#endif
}

// -- functions of numbers: each for float, half and bfloat, and for their vectors

#define OPSMITH_F(name, R, T, call) \
  OPSMITH_PLAIN R name(T a) OPSMITH_BODY(float x = (float)a; return (R)(call);)
#define OPSMITH_F2(name, R, T, call) \
  OPSMITH_PLAIN R name(T a, T b) OPSMITH_BODY(float x = (float)a; float y = (float)b; return (R)(call);)
#define OPSMITH_V(name, T) \
  template <int N> OPSMITH_PLAIN vec<T, N> name(vec<T, N> a) OPSMITH_BODY( \
    vec<T, N> r; OPSMITH_EACH(i, N) r[i] = name((T)a[i]); return r;)
#define OPSMITH_V2(name, T) \
  template <int N> OPSMITH_PLAIN vec<T, N> name(vec<T, N> a, vec<T, N> b) OPSMITH_BODY( \
    vec<T, N> r; OPSMITH_EACH(i, N) r[i] = name((T)a[i], (T)b[i]); return r;)
#define OPSMITH_V2S(name, T) \
  template <int N> OPSMITH_PLAIN vec<T, N> name(vec<T, N> a, opsmith::Exactly<T> b) OPSMITH_BODY( \
    vec<T, N> r; OPSMITH_EACH(i, N) r[i] = name((T)a[i], b); return r;)
#define OPSMITH_V3(name, T) \
  template <int N> OPSMITH_PLAIN vec<T, N> name(vec<T, N> a, vec<T, N> b, vec<T, N> c) OPSMITH_BODY( \
    vec<T, N> r; OPSMITH_EACH(i, N) r[i] = name((T)a[i], (T)b[i], (T)c[i]); return r;)
#define OPSMITH_FLOATS(X) X(float) X(half) X(bfloat)
#define OPSMITH_ONE(name, call) \
  OPSMITH_F(name, float, float, call) OPSMITH_V(name, float) OPSMITH_F(name, half, half, call) OPSMITH_V(name, half) \
  OPSMITH_F(name, bfloat, bfloat, call) OPSMITH_V(name, bfloat)
#define OPSMITH_TWO(name, call) \
  OPSMITH_F2(name, float, float, call) OPSMITH_V2(name, float) OPSMITH_F2(name, half, half, call) \
  OPSMITH_V2(name, half) OPSMITH_F2(name, bfloat, bfloat, call) OPSMITH_V2(name, bfloat)
OPSMITH_ONE(exp, expf(x)) OPSMITH_ONE(exp2, exp2f(x)) OPSMITH_ONE(exp10, exp10f(x)) OPSMITH_ONE(log, logf(x))
OPSMITH_ONE(log2, log2f(x)) OPSMITH_ONE(log10, log10f(x)) OPSMITH_ONE(sqrt, sqrtf(x))
OPSMITH_ONE(rsqrt, (float)(1.0 / ::sqrt((double)x))) OPSMITH_ONE(sin, sinf(x)) OPSMITH_ONE(cos, cosf(x))
OPSMITH_ONE(tan, tanf(x)) OPSMITH_ONE(asin, asinf(x)) OPSMITH_ONE(acos, acosf(x)) OPSMITH_ONE(atan, atanf(x))
OPSMITH_ONE(sinh, sinhf(x)) OPSMITH_ONE(cosh, coshf(x)) OPSMITH_ONE(tanh, tanhf(x)) OPSMITH_ONE(asinh, asinhf(x))
OPSMITH_ONE(acosh, acoshf(x)) OPSMITH_ONE(atanh, atanhf(x)) OPSMITH_ONE(sinpi, (float)::sin(3.14159265358979323846 * x))
OPSMITH_ONE(cospi, (float)::cos(3.14159265358979323846 * x)) OPSMITH_TWO(atan2, atan2f(x, y))
OPSMITH_TWO(pow, powf(x, y)) OPSMITH_TWO(powr, powf(x, y)) OPSMITH_TWO(divide, x / y) OPSMITH_TWO(fmod, fmodf(x, y))
OPSMITH_ONE(fabs, fabsf(x)) OPSMITH_ONE(floor, floorf(x)) OPSMITH_ONE(ceil, ceilf(x)) OPSMITH_ONE(trunc, truncf(x))
OPSMITH_ONE(round, roundf(x)) OPSMITH_ONE(rint, rintf(x)) OPSMITH_ONE(fract, fminf(x - floorf(x), 0x1.fffffep-1f))
OPSMITH_ONE(saturate, fminf(fmaxf(x, 0.0f), 1.0f)) OPSMITH_ONE(sign, x > 0 ? 1.0f : x < 0 ? -1.0f : x == x ? x : 0.0f)
OPSMITH_TWO(fmin, fminf(x, y)) OPSMITH_TWO(fmax, fmaxf(x, y)) OPSMITH_TWO(fdim, fdimf(x, y))
OPSMITH_TWO(copysign, copysignf(x, y)) OPSMITH_TWO(step, y < x ? 0.0f : 1.0f) OPSMITH_TWO(nextafter, nextafterf(x, y))

#define OPSMITH_ORDER(T) \
  OPSMITH_PLAIN T min(T a, T b) OPSMITH_BODY(return b < a ? b : a;) \
  OPSMITH_PLAIN T max(T a, T b) OPSMITH_BODY(return a < b ? b : a;)
#define OPSMITH_ORDER_FLOAT(T) \
  OPSMITH_PLAIN T min(T a, T b) OPSMITH_BODY(return (T)fminf((float)a, (float)b);) \
  OPSMITH_PLAIN T max(T a, T b) OPSMITH_BODY(return (T)fmaxf((float)a, (float)b);) \
  OPSMITH_PLAIN T abs(T a) OPSMITH_BODY(return (T)fabsf((float)a);) OPSMITH_V(abs, T)
#define OPSMITH_ABS(T) OPSMITH_PLAIN T abs(T a) OPSMITH_BODY(return a < 0 ? (T)-a : a;) OPSMITH_V(abs, T)
#define OPSMITH_ORDERS(T) \
  OPSMITH_V2(min, T) OPSMITH_V2(max, T) OPSMITH_V2S(min, T) OPSMITH_V2S(max, T) \
  OPSMITH_PLAIN T clamp(T a, T low, T high) OPSMITH_BODY(return min(max(a, low), high);) OPSMITH_V3(clamp, T) \
  template <int N> OPSMITH_PLAIN vec<T, N> clamp(vec<T, N> a, opsmith::Exactly<T> low, opsmith::Exactly<T> high) \
    OPSMITH_BODY(return min(max(a, low), high);) \
  OPSMITH_PLAIN T min3(T a, T b, T c) OPSMITH_BODY(return min(a, min(b, c));) \
  OPSMITH_PLAIN T max3(T a, T b, T c) OPSMITH_BODY(return max(a, max(b, c));) \
  OPSMITH_PLAIN T median3(T a, T b, T c) OPSMITH_BODY(return max(min(a, b), min(max(a, b), c));) \
  OPSMITH_PLAIN T select(T a, T b, bool is_second) OPSMITH_BODY(return is_second ? b : a;) \
  template <int N, class C> OPSMITH_PLAIN vec<T, N> select(vec<T, N> a, vec<T, N> b, vec<C, N> is_second) OPSMITH_BODY( \
    vec<T, N> r; OPSMITH_EACH(i, N) r[i] = is_second[i] ? b[i] : a[i]; return r;)
#define OPSMITH_INTS(X) X(char) X(uchar) X(short) X(ushort) X(int) X(uint) X(long) X(ulong)
OPSMITH_INTS(OPSMITH_ORDER) OPSMITH_ABS(char) OPSMITH_ABS(short) OPSMITH_ABS(int) OPSMITH_ABS(long)
OPSMITH_FLOATS(OPSMITH_ORDER_FLOAT) OPSMITH_INTS(OPSMITH_ORDERS) OPSMITH_FLOATS(OPSMITH_ORDERS)

#define OPSMITH_JOINED(T) \
  OPSMITH_PLAIN T fma(T a, T b, T c) OPSMITH_BODY(return (T)::fma((double)a, (double)b, (double)c);) OPSMITH_V3(fma, T) \
  OPSMITH_PLAIN T mix(T a, T b, T t) OPSMITH_BODY(return a + (b - a) * t;) OPSMITH_V3(mix, T) \
  OPSMITH_PLAIN T smoothstep(T low, T high, T a) OPSMITH_BODY( \
    T t = saturate((T)((a - low) / (high - low))); return t * t * ((T)3 - (T)2 * t);) \
  OPSMITH_PLAIN T ldexp(T a, int k) OPSMITH_BODY(return (T)ldexpf((float)a, k);) \
  OPSMITH_PLAIN T frexp(T a, thread int &k) OPSMITH_BODY(return (T)frexpf((float)a, &k);) \
  OPSMITH_PLAIN T modf(T a, thread T &whole) OPSMITH_BODY(float w; float r = modff((float)a, &w); whole = (T)w; return (T)r;) \
  OPSMITH_PLAIN T sincos(T a, thread T &cosine) OPSMITH_BODY(cosine = (T)cosf((float)a); return (T)sinf((float)a);) \
  OPSMITH_PLAIN bool isnan(T a) OPSMITH_BODY(return a != a;) \
  OPSMITH_PLAIN bool isinf(T a) OPSMITH_BODY(return __builtin_isinf((float)a);) \
  OPSMITH_PLAIN bool isfinite(T a) OPSMITH_BODY(return __builtin_isfinite((float)a);) \
  OPSMITH_PLAIN bool signbit(T a) OPSMITH_BODY(return __builtin_signbitf((float)a);) \
  template <int N> OPSMITH_PLAIN T dot(vec<T, N> a, vec<T, N> b) OPSMITH_BODY( \
    T r = a[0] * b[0]; for (int i = 1; i < N; i++) r += a[i] * b[i]; return r;) \
  template <int N> OPSMITH_PLAIN T length_squared(vec<T, N> a) OPSMITH_BODY(return dot(a, a);) \
  template <int N> OPSMITH_PLAIN T length(vec<T, N> a) OPSMITH_BODY(return (T)sqrtf((float)dot(a, a));) \
  template <int N> OPSMITH_PLAIN T distance(vec<T, N> a, vec<T, N> b) OPSMITH_BODY(return length(a - b);) \
  template <int N> OPSMITH_PLAIN T distance_squared(vec<T, N> a, vec<T, N> b) OPSMITH_BODY(return length_squared(a - b);) \
  template <int N> OPSMITH_PLAIN vec<T, N> normalize(vec<T, N> a) OPSMITH_BODY(return a * (T)(1 / sqrtf((float)dot(a, a)));) \
  OPSMITH_PLAIN vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) OPSMITH_BODY( \
    vec<T, 3> r = {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; return r;)
OPSMITH_FLOATS(OPSMITH_JOINED)
// Each in both namespaces; here they are one, since functions are computed as exactly as the C library does.
#define OPSMITH_FORMS \
  using metal::exp; using metal::exp2; using metal::exp10; using metal::log; using metal::log2; \
  using metal::log10; using metal::sqrt; using metal::rsqrt; using metal::sin; using metal::cos; \
  using metal::tan; using metal::asin; using metal::acos; using metal::atan; using metal::sinh; \
  using metal::cosh; using metal::tanh; using metal::asinh; using metal::acosh; using metal::atanh; \
  using metal::sinpi; using metal::cospi; using metal::atan2; using metal::pow; using metal::powr; \
  using metal::divide; using metal::fmod; using metal::fabs; using metal::floor; using metal::ceil; \
  using metal::trunc; using metal::round; using metal::rint; using metal::fract; using metal::saturate; \
  using metal::sign; using metal::fmin; using metal::fmax; using metal::fdim; using metal::copysign; \
  using metal::step; using metal::nextafter; using metal::abs; using metal::min; using metal::max; \
  using metal::clamp; using metal::min3; using metal::max3; using metal::median3; using metal::fma; \
  using metal::mix; using metal::smoothstep; using metal::ldexp; using metal::frexp; using metal::modf; \
  using metal::sincos; using metal::dot; using metal::length; using metal::distance; using metal::normalize;
namespace precise { OPSMITH_FORMS }
namespace fast { OPSMITH_FORMS }
template <class T, int N> OPSMITH_PLAIN bool any(vec<T, N> a) OPSMITH_BODY(bool r = 0; OPSMITH_EACH(i, N) r |= a[i] != 0; return r;)
template <class T, int N> OPSMITH_PLAIN bool all(vec<T, N> a) OPSMITH_BODY(bool r = 1; OPSMITH_EACH(i, N) r &= a[i] != 0; return r;)

// -- bits

#define OPSMITH_BITS(T, U, BITS) \
  OPSMITH_PLAIN T popcount(T a) OPSMITH_BODY(return (T)__builtin_popcountl((unsigned long)(U)a);) \
  OPSMITH_PLAIN T clz(T a) OPSMITH_BODY(return (T)((U)a ? __builtin_clzl((unsigned long)(U)a) - 64 + BITS : BITS);) \
  OPSMITH_PLAIN T ctz(T a) OPSMITH_BODY(return (T)((U)a ? __builtin_ctzl((unsigned long)(U)a) : BITS);) \
  OPSMITH_PLAIN T reverse_bits(T a) OPSMITH_BODY(U r = 0; OPSMITH_EACH(i, BITS) r = (U)(r << 1 | ((U)a >> i & 1)); return (T)r;) \
  OPSMITH_PLAIN T rotate(T a, T k) OPSMITH_BODY( \
    int s = (int)k & (BITS - 1); return s ? (T)((U)a << s | (U)a >> (BITS - s)) : a;) \
  OPSMITH_PLAIN T mulhi(T a, T b) OPSMITH_BODY(return (T)((__int128)a * (__int128)b >> BITS);) \
  OPSMITH_PLAIN U absdiff(T a, T b) OPSMITH_BODY(return a < b ? (U)b - (U)a : (U)a - (U)b;) \
  OPSMITH_PLAIN T extract_bits(T a, uint from, uint count) OPSMITH_BODY( \
    return count ? (T)((T)((U)a << (BITS - from - count)) >> (BITS - count)) : (T)0;)
OPSMITH_BITS(int, uint, 32) OPSMITH_BITS(uint, uint, 32) OPSMITH_BITS(long, ulong, 64) OPSMITH_BITS(ulong, ulong, 64)
OPSMITH_BITS(short, ushort, 16) OPSMITH_BITS(ushort, ushort, 16) OPSMITH_BITS(char, uchar, 8) OPSMITH_BITS(uchar, uchar, 8)

// -- barriers and fences

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
OPSMITH_PLAIN constexpr mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((int)a | (int)b); }
enum memory_order { memory_order_relaxed };
enum opsmith_order { memory_order_acquire, memory_order_release, memory_order_acq_rel, memory_order_seq_cst };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };
OPSMITH_PLAIN void threadgroup_barrier(mem_flags flags, OPSMITH_LINE) OPSMITH_BODY(
  opsmith_barrier_over(opsmith_line, ((int)flags >> 1 & 1) | ((int)flags & 1) << 1);)
OPSMITH_PLAIN void simdgroup_barrier(mem_flags, OPSMITH_LINE) OPSMITH_BODY(
  opsmith_warp(OPSMITH_SYNC, 0xffffffffu, 0, 0, opsmith_line);)
OPSMITH_PLAIN void atomic_thread_fence(mem_flags, opsmith_order, thread_scope scope = thread_scope_device, OPSMITH_LINE)
  OPSMITH_BODY(if (scope == thread_scope_device) opsmith_fence(opsmith_line); else opsmith_fence_block(opsmith_line);)

// -- operations of a simdgroup, over those of its lanes that take part, and of four lanes

#ifndef __OPENCL_CPP_VERSION__
struct OpsmithLanes {  // what those that take part have given
  unsigned mask;
  int line;
  OPSMITH_INSIDE bool has(int lane) const { return mask >> lane & 1; }
  template <class T> OPSMITH_INSIDE T get(int lane) const { return opsmith::unpack<T>(opsmith_gathered(mask, (unsigned)lane, line)); }
};
template <class T> OPSMITH_PLAIN OpsmithLanes opsmith_gather(T value, int line) {
  return OpsmithLanes{(unsigned)opsmith_warp(OPSMITH_GATHER, 0xffffffffu, opsmith::pack(value), 0, line), line};
}
#endif
#define OPSMITH_FOLD(name, from, to, step) \
  template <class T> OPSMITH_PLAIN T name(T value, OPSMITH_LINE) OPSMITH_BODY( \
    OpsmithLanes lanes = opsmith_gather(value, opsmith_line); \
    int own = (int)opsmith_lane(); bool has = false; T r = T(); (void)own; \
    for (int lane = from; lane < to; lane++) if (lanes.has(lane)) { \
      T v = lanes.get<T>(lane); if (has) r = (T)(step); else r = v; has = true; } \
    return r;) \
  template <class T, int N> OPSMITH_PLAIN vec<T, N> name(vec<T, N> value, OPSMITH_LINE) OPSMITH_BODY( \
    vec<T, N> r; OPSMITH_EACH(i, N) r[i] = name((T)value[i], opsmith_line); return r;)
#define OPSMITH_FOLDS(simd, from, to) \
  OPSMITH_FOLD(simd##_sum, from, to, r + v) OPSMITH_FOLD(simd##_product, from, to, r * v) \
  OPSMITH_FOLD(simd##_min, from, to, v < r ? v : r) OPSMITH_FOLD(simd##_max, from, to, r < v ? v : r) \
  OPSMITH_FOLD(simd##_and, from, to, r & v) OPSMITH_FOLD(simd##_or, from, to, r | v) OPSMITH_FOLD(simd##_xor, from, to, r ^ v)
OPSMITH_FOLDS(simd, 0, 32) OPSMITH_FOLDS(quad, (own & ~3), (own | 3) + 1)
OPSMITH_FOLD(simd_prefix_inclusive_sum, 0, own + 1, r + v) OPSMITH_FOLD(simd_prefix_inclusive_product, 0, own + 1, r * v)
#define OPSMITH_BEFORE(name, first, step) \
  template <class T> OPSMITH_PLAIN T name(T value, OPSMITH_LINE) OPSMITH_BODY( \
    OpsmithLanes lanes = opsmith_gather(value, opsmith_line); T r = (T)first; \
    for (int lane = 0; lane < (int)opsmith_lane(); lane++) if (lanes.has(lane)) { T v = lanes.get<T>(lane); r = (T)(step); } \
    return r;)
OPSMITH_BEFORE(simd_prefix_exclusive_sum, 0, r + v) OPSMITH_BEFORE(simd_prefix_exclusive_product, 1, r * v)

#define OPSMITH_PICK(name, C, other) \
  template <class T> OPSMITH_PLAIN T name(T value, C k, OPSMITH_LINE) OPSMITH_BODY( \
    OpsmithLanes lanes = opsmith_gather(value, opsmith_line); int own = (int)opsmith_lane(); int lane = other; (void)own; \
    return lane == own ? value : lanes.get<T>(lane);) \
  template <class T, int N> OPSMITH_PLAIN vec<T, N> name(vec<T, N> value, C k, OPSMITH_LINE) OPSMITH_BODY( \
    vec<T, N> r; OPSMITH_EACH(i, N) r[i] = name((T)value[i], k, opsmith_line); return r;)
OPSMITH_PICK(simd_shuffle, ushort, k & 31) OPSMITH_PICK(simd_broadcast, ushort, k & 31)
OPSMITH_PICK(simd_shuffle_xor, ushort, (own ^ k) & 31) OPSMITH_PICK(simd_shuffle_up, ushort, own - k < 0 ? own : own - k)
OPSMITH_PICK(simd_shuffle_down, ushort, own + k > 31 ? own : own + k)
OPSMITH_PICK(simd_shuffle_rotate_up, ushort, (own - k) & 31) OPSMITH_PICK(simd_shuffle_rotate_down, ushort, (own + k) & 31)
OPSMITH_PICK(quad_shuffle, ushort, (own & ~3) | (k & 3)) OPSMITH_PICK(quad_broadcast, ushort, (own & ~3) | (k & 3))
OPSMITH_PICK(quad_shuffle_xor, ushort, own ^ (k & 3))
OPSMITH_PICK(quad_shuffle_up, ushort, (own & 3) - k < 0 ? own : own - k)
OPSMITH_PICK(quad_shuffle_down, ushort, (own & 3) + k > 3 ? own : own + k)
template <class T> OPSMITH_PLAIN T simd_shuffle_and_fill_up(T value, T fill, ushort k, OPSMITH_LINE) OPSMITH_BODY(
  OpsmithLanes lanes = opsmith_gather(value, opsmith_line); int lane = (int)opsmith_lane() - k;
  T other = opsmith::unpack<T>(0); OpsmithLanes fills = opsmith_gather(fill, opsmith_line);
  if (lane < 0) return fills.get<T>(lane + 32);
  lanes = opsmith_gather(value, opsmith_line); other = lanes.get<T>(lane); return other;)
template <class T> OPSMITH_PLAIN T simd_broadcast_first(T value, OPSMITH_LINE) OPSMITH_BODY(
  OpsmithLanes lanes = opsmith_gather(value, opsmith_line); return lanes.get<T>(__builtin_ctz(lanes.mask));)
OPSMITH_PLAIN bool simd_is_first(OPSMITH_LINE) OPSMITH_BODY(
  return __builtin_ctz(opsmith_gather(0, opsmith_line).mask) == (int)opsmith_lane();)
OPSMITH_PLAIN bool simd_any(bool p, OPSMITH_LINE) OPSMITH_BODY(
  OpsmithLanes lanes = opsmith_gather((int)p, opsmith_line);
  bool r = false; OPSMITH_EACH(i, 32) r |= lanes.has(i) && lanes.get<int>(i); return r;)
OPSMITH_PLAIN bool simd_all(bool p, OPSMITH_LINE) OPSMITH_BODY(return !simd_any(!p, opsmith_line);)
struct simd_vote {
  typedef ulong vote_t;
  ulong bits;
  explicit simd_vote(ulong value = 0) OPSMITH_INTO(bits(value))
  explicit operator ulong() const OPSMITH_BODY(return bits;)
  bool all() const OPSMITH_BODY(return bits == 0xffffffffu;)
  bool any() const OPSMITH_BODY(return bits != 0;)
};
OPSMITH_PLAIN simd_vote simd_ballot(bool p, OPSMITH_LINE) OPSMITH_BODY(
  OpsmithLanes lanes = opsmith_gather((int)p, opsmith_line);
  ulong r = 0; OPSMITH_EACH(i, 32) if (lanes.has(i) && lanes.get<int>(i)) r |= 1ul << i; return simd_vote(r);)
OPSMITH_PLAIN simd_vote simd_active_threads_mask(OPSMITH_LINE) OPSMITH_BODY(return simd_vote(opsmith_gather(0, opsmith_line).mask);)

// -- atomics

template <class T> struct atomic {
  T opsmith_value;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;
typedef atomic<ulong> atomic_ulong;
static_assert(sizeof(atomic<int>) + sizeof(atomic<uint>) + sizeof(atomic<float>) == 12 && sizeof(atomic<bool>) == 1 &&
              sizeof(packed_float2) + sizeof(packed_float3) + sizeof(packed_float4) == 36, "complete: kernels take them");
#define OPSMITH_UPDATE(S, name, T, step) \
  OPSMITH_PLAIN T name(volatile S atomic<T> *place, opsmith::Exactly<T> v, memory_order, OPSMITH_LINE) OPSMITH_BODY( \
    return opsmith_update((T *)&place->opsmith_value, opsmith_line, [=](T old) -> T { return (T)(step); });)
#define OPSMITH_ADDS(S, T) \
  OPSMITH_UPDATE(S, atomic_fetch_add_explicit, T, old + v) OPSMITH_UPDATE(S, atomic_fetch_sub_explicit, T, old - v)
#define OPSMITH_ACCESS(S, T) \
  OPSMITH_PLAIN T atomic_load_explicit(const volatile S atomic<T> *place, memory_order, OPSMITH_LINE) OPSMITH_BODY( \
    return opsmith_update((T *)&place->opsmith_value, opsmith_line, [](T old) { return old; });) \
  OPSMITH_PLAIN void atomic_store_explicit(volatile S atomic<T> *place, opsmith::Exactly<T> v, memory_order, OPSMITH_LINE) \
    OPSMITH_BODY(opsmith_begin_atomic((void *)&place->opsmith_value, sizeof(T), opsmith_line, 0); \
                 opsmith_store((void *)&place->opsmith_value, opsmith::pack(v), sizeof(T));) \
  OPSMITH_UPDATE(S, atomic_exchange_explicit, T, v) \
  OPSMITH_PLAIN bool atomic_compare_exchange_weak_explicit(volatile S atomic<T> *place, thread T *expected, \
      opsmith::Exactly<T> v, memory_order, memory_order, OPSMITH_LINE) OPSMITH_BODY( \
    void *at = (void *)&place->opsmith_value; unsigned long wanted = opsmith::pack(*expected); unsigned long old; \
    opsmith_begin_atomic(at, sizeof(T), opsmith_line, 1); \
    bool is_early = opsmith_load_earlier(at, sizeof(T), &old) && (old != wanted || old == opsmith::pack(v)); \
    if (!is_early) old = opsmith_load(at, sizeof(T)); \
    if (!is_early && old == wanted) opsmith_store(at, opsmith::pack(v), sizeof(T)); else opsmith_keep(at, sizeof(T)); \
    *expected = opsmith::unpack<T>(old); return old == wanted;)
#define OPSMITH_WHOLE(S, T) \
  OPSMITH_ADDS(S, T) OPSMITH_UPDATE(S, atomic_fetch_min_explicit, T, v < old ? v : old) \
  OPSMITH_UPDATE(S, atomic_fetch_max_explicit, T, old < v ? v : old) OPSMITH_UPDATE(S, atomic_fetch_and_explicit, T, old & v) \
  OPSMITH_UPDATE(S, atomic_fetch_or_explicit, T, old | v) OPSMITH_UPDATE(S, atomic_fetch_xor_explicit, T, old ^ v)
#define OPSMITH_ATOMICS(S) \
  OPSMITH_ACCESS(S, int) OPSMITH_ACCESS(S, uint) OPSMITH_ACCESS(S, bool) OPSMITH_ACCESS(S, float) OPSMITH_WHOLE(S, int) \
  OPSMITH_WHOLE(S, uint) OPSMITH_ADDS(S, float)
OPSMITH_SPACES(OPSMITH_ATOMICS)

#ifndef __OPENCL_CPP_VERSION__
// What a kernel's parameters are given: a number, or the first components of a triple.
template <class T> OPSMITH_PLAIN T opsmith_given(unsigned x, unsigned y, unsigned z) {
  if constexpr (OpsmithShape<T>::size == 1) return (T)x;
  else {
    const unsigned all[3] = {x, y, z};
    T r;
    OPSMITH_EACH(i, OpsmithShape<T>::size) r[i] = (typename OpsmithShape<T>::element)all[i];
    return r;
  }
}
#endif
}  // namespace metal

#ifndef __OPENCL_CPP_VERSION__
namespace opsmith {  // which types an array's entries may be read as, beside their own
template <class E, class T> struct Holds<E, metal::atomic<T>> : Holds<E, T> {};
template <class E, class T, int N> struct Holds<E, metal::vec<T, N>> : Holds<E, T> {};
template <class E, class T, int N> struct Holds<E, metal::packed_vec<T, N>> : Holds<E, T> {};
OPSMITH_HOLDS(fp16, half) OPSMITH_HOLDS(bf16, bfloat) OPSMITH_HOLDS(int32, unsigned) OPSMITH_HOLDS(int64, unsigned long)
}  // namespace opsmith
#endif
