// What every dialect of the emulator is written in terms of: the runtime (emulator.cpp), whose calls name the line of
// the program that made them, and what C++ gives without a header of the system.
#pragma once

#define OPSMITH_TEXT_(x) #x
#define OPSMITH_TEXT(x) OPSMITH_TEXT_(x)
#define OPSMITH_SECTION(n) __attribute__((section(".bss.opsmith_shared_" OPSMITH_TEXT(n)), aligned(16)))
#define OPSMITH_LINE int opsmith_line = __builtin_LINE()
#define OPSMITH_INSIDE inline __attribute__((always_inline))
#define OPSMITH_PLAIN static inline __attribute__((always_inline))

typedef __SIZE_TYPE__ size_t;

extern "C" {
#define OPSMITH_CONST __attribute__((const))
unsigned opsmith_thread_x() OPSMITH_CONST;
unsigned opsmith_thread_y() OPSMITH_CONST;
unsigned opsmith_thread_z() OPSMITH_CONST;
unsigned opsmith_block_x() OPSMITH_CONST;
unsigned opsmith_block_y() OPSMITH_CONST;
unsigned opsmith_block_z() OPSMITH_CONST;
unsigned opsmith_block_size_x() OPSMITH_CONST;
unsigned opsmith_block_size_y() OPSMITH_CONST;
unsigned opsmith_block_size_z() OPSMITH_CONST;
unsigned opsmith_grid_x() OPSMITH_CONST;
unsigned opsmith_grid_y() OPSMITH_CONST;
unsigned opsmith_grid_z() OPSMITH_CONST;
unsigned opsmith_lane() OPSMITH_CONST;
unsigned opsmith_rank() OPSMITH_CONST;
extern char opsmith_dynamic_memory[] __attribute__((visibility("hidden"), aligned(1024)));
unsigned long opsmith_slot(unsigned) OPSMITH_CONST;
int opsmith_barrier(int line, int predicate, int operation);
int opsmith_barrier_over(int line, int memory);
unsigned long opsmith_warp(int operation, unsigned mask, unsigned long value, int source, int line);
unsigned long opsmith_gathered(unsigned lanes, unsigned lane, int line);
void opsmith_fence(int line);
void opsmith_fence_block(int line);
void opsmith_begin_atomic(const void *place, unsigned size, int line, int is_reading);
unsigned long opsmith_load(const void *place, unsigned size);
void opsmith_store(void *place, unsigned long value, unsigned size);
int opsmith_load_earlier(const void *place, unsigned size, unsigned long *value);
void opsmith_keep(const void *place, unsigned size);
void opsmith_read_only(const void *place, unsigned size, int line);
void opsmith_touch(const void *place, unsigned long size, int line, int is_writing);
[[noreturn]] void opsmith_stop(int kind, int line);
long opsmith_clock();

float expf(float), exp2f(float), exp10f(float), expm1f(float), logf(float), log2f(float), log10f(float), log1pf(float);
float powf(float, float), sqrtf(float), cbrtf(float), hypotf(float, float), sinf(float), cosf(float), tanf(float);
float asinf(float), acosf(float), atanf(float), atan2f(float, float), sinhf(float), coshf(float), tanhf(float);
float asinhf(float), acoshf(float), atanhf(float), erff(float), erfcf(float), tgammaf(float), lgammaf(float);
float floorf(float), ceilf(float), truncf(float), roundf(float), rintf(float), nearbyintf(float), fabsf(float);
float fmodf(float, float), remainderf(float, float), fmaf(float, float, float), fmaxf(float, float);
float fminf(float, float), fdimf(float, float), copysignf(float, float), ldexpf(float, int), frexpf(float, int *);
float modff(float, float *), scalbnf(float, int), logbf(float), nextafterf(float, float), j0f(float), j1f(float);
double exp(double), exp2(double), exp10(double), expm1(double), log(double), log2(double), log10(double);
double log1p(double), pow(double, double), sqrt(double), cbrt(double), hypot(double, double), sin(double);
double cos(double), tan(double), asin(double), acos(double), atan(double), atan2(double, double), sinh(double);
double cosh(double), tanh(double), asinh(double), acosh(double), atanh(double), erf(double), erfc(double);
double tgamma(double), lgamma(double), floor(double), ceil(double), trunc(double), round(double), rint(double);
double nearbyint(double), fabs(double), fmod(double, double), remainder(double, double);
double fma(double, double, double), fmax(double, double), fmin(double, double), fdim(double, double);
double copysign(double, double), ldexp(double, int), frexp(double, int *), modf(double, double *);
double scalbn(double, int), logb(double), nextafter(double, double);
long lrintf(float), lroundf(float), lrint(double), lround(double);
long long llrintf(float), llroundf(float), llrint(double), llround(double);
int ilogbf(float), ilogb(double);
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
}

namespace opsmith {
template <class T> struct Same { typedef T type; };
template <class T> using Exactly = typename Same<T>::type;
template <bool B, class T = void> struct If {};
template <class T> struct If<true, T> { typedef T type; };
template <class A, class B> struct IsSame { static constexpr bool value = false; };
template <class A> struct IsSame<A, A> { static constexpr bool value = true; };
template <class T> struct Plain { typedef T type; };
template <class T> struct Plain<const T> { typedef T type; };
template <class T> struct Plain<volatile T> { typedef T type; };
template <class T> struct Plain<const volatile T> { typedef T type; };
template <class T> struct IsInteger { static constexpr bool value = false; };
#define OPSMITH_INTEGER(T) template <> struct IsInteger<T> { static constexpr bool value = true; };
OPSMITH_INTEGER(bool) OPSMITH_INTEGER(char) OPSMITH_INTEGER(signed char) OPSMITH_INTEGER(unsigned char)
OPSMITH_INTEGER(short) OPSMITH_INTEGER(unsigned short) OPSMITH_INTEGER(int) OPSMITH_INTEGER(unsigned)
OPSMITH_INTEGER(long) OPSMITH_INTEGER(unsigned long) OPSMITH_INTEGER(long long) OPSMITH_INTEGER(unsigned long long)
template <class To, class From> OPSMITH_PLAIN To cast_bits(From from) {
  To to;
  __builtin_memcpy(&to, &from, sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
  return to;
}
template <class T> OPSMITH_PLAIN unsigned long pack(T value) {
  static_assert(sizeof(T) <= 8, "at most 8 bytes");
  unsigned long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T> OPSMITH_PLAIN T unpack(unsigned long bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
}  // namespace opsmith

OPSMITH_PLAIN void *opsmith_copy(void *to, const void *from, size_t size, OPSMITH_LINE) {
  opsmith_touch(from, size, opsmith_line, 0);
  opsmith_touch(to, size, opsmith_line, 1);
  return memcpy(to, from, size);
}
OPSMITH_PLAIN void *opsmith_fill(void *to, int byte, size_t size, OPSMITH_LINE) {
  opsmith_touch(to, size, opsmith_line, 1);
  return memset(to, byte, size);
}

// -- warps, atomics

enum OpsmithWarp {
  OPSMITH_SYNC, OPSMITH_SHUFFLE, OPSMITH_BALLOT, OPSMITH_ACTIVE, OPSMITH_MATCH_ANY, OPSMITH_MATCH_ALL,
  OPSMITH_ADD, OPSMITH_MIN, OPSMITH_MAX, OPSMITH_MIN_SIGNED, OPSMITH_MAX_SIGNED, OPSMITH_AND, OPSMITH_OR, OPSMITH_XOR,
  OPSMITH_GATHER
};
template <class T> OPSMITH_PLAIN T opsmith_shuffle(unsigned mask, T value, int source, int line) {
  return opsmith::unpack<T>(opsmith_warp(OPSMITH_SHUFFLE, mask, opsmith::pack(value), source, line));
}
template <class T, class F> OPSMITH_PLAIN T opsmith_update(T *place, int line, F change) {
  opsmith_begin_atomic(place, sizeof(T), line, 1);
  unsigned long earlier;
  if (opsmith_load_earlier(place, sizeof(T), &earlier)) {
    T old = opsmith::unpack<T>(earlier);
    if (opsmith::pack<T>(change(old)) == earlier) {
      opsmith_keep(place, sizeof(T));
      return old;
    }
  }
  T old = opsmith::unpack<T>(opsmith_load(place, sizeof(T)));
  opsmith_store(place, opsmith::pack<T>(change(old)), sizeof(T));
  return old;
}
