// How a launch calls a kernel: each argument of the plan against the parameter that takes it.
#pragma once

namespace opsmith {
struct fp32 {}; struct fp64 {}; struct fp16 {}; struct bf16 {}; struct int8 {}; struct int32 {}; struct int64 {};
struct uint8 {}; struct int16 {}; struct fp8_e4m3 {}; struct fp8_e5m2 {}; struct int4x2 {};
struct boolean {};
template <class E> struct Array {};  // of entries of a type
template <class E> struct Input {};  // one that may not be written
struct Whole {};
struct Real {};

template <class E, class T> struct Holds { static constexpr bool value = false; };
#define OPSMITH_HOLDS(E, T) template <> struct Holds<E, T> { static constexpr bool value = true; };
OPSMITH_HOLDS(fp32, float) OPSMITH_HOLDS(fp64, double) OPSMITH_HOLDS(int8, signed char) OPSMITH_HOLDS(int8, char)
OPSMITH_HOLDS(int32, int) OPSMITH_HOLDS(int64, long) OPSMITH_HOLDS(int64, long long) OPSMITH_HOLDS(boolean, bool)
OPSMITH_HOLDS(boolean, unsigned char) OPSMITH_HOLDS(boolean, signed char) OPSMITH_HOLDS(boolean, char)
OPSMITH_HOLDS(uint8, unsigned char) OPSMITH_HOLDS(int16, short) OPSMITH_HOLDS(int4x2, unsigned char)
OPSMITH_HOLDS(fp8_e4m3, unsigned char) OPSMITH_HOLDS(fp8_e5m2, unsigned char)

template <class A, class P> struct Takes { static constexpr bool value = false; };
template <class E, class T> struct Takes<Array<E>, T *> {
  static constexpr bool value = Holds<E, typename Plain<T>::type>::value || IsSame<typename Plain<T>::type, void>::value;
};
template <class E, class T> struct Takes<Input<E>, const T *> { static constexpr bool value = Takes<Array<E>, T *>::value; };
template <class P> struct IsReal { static constexpr bool value = IsSame<P, float>::value || IsSame<P, double>::value; };
template <class P> struct Takes<Whole, P> { static constexpr bool value = IsInteger<P>::value || IsReal<P>::value; };
template <class T> struct Takes<Whole, T *> { static constexpr bool value = false; };
template <class P> struct Takes<Real, P> { static constexpr bool value = IsReal<P>::value; };
template <class T> struct Takes<Real, T *> { static constexpr bool value = false; };

template <class A, class P> struct Read {  // an address
  static OPSMITH_INSIDE P from(unsigned long bits) { return (P)bits; }
};
template <class P> struct Read<Whole, P> {
  static OPSMITH_INSIDE P from(unsigned long bits) { return (P)(long)bits; }
};
template <class P> struct Read<Real, P> {
  static OPSMITH_INSIDE P from(unsigned long bits) { return (P)cast_bits<double>(bits); }
};

template <unsigned I, class... P> struct Nth;
template <class P, class... R> struct Nth<0, P, R...> { typedef P type; };
template <unsigned I, class P, class... R> struct Nth<I, P, R...> { typedef typename Nth<I - 1, R...>::type type; };

template <class F> struct Kernel;
template <class... P> struct Kernel<void (*)(P...)> {
  static constexpr unsigned count = sizeof...(P);
  template <unsigned I, class A> static constexpr bool takes() {
    if constexpr (I < sizeof...(P)) return Takes<A, typename Plain<typename Nth<I, P...>::type>::type>::value;
    else return true;
  }
};

template <unsigned... I> struct Places {};
template <unsigned N, unsigned... I> struct MakePlaces : MakePlaces<N - 1, N - 1, I...> {};
template <unsigned... I> struct MakePlaces<0, I...> { typedef Places<I...> type; };

template <class... A, class... P, unsigned... I>
OPSMITH_PLAIN void call_with(void (*kernel)(P...), Places<I...>) {
  kernel(Read<A, typename Plain<P>::type>::from(opsmith_slot(I))...);
}
template <class... A, class... P> OPSMITH_PLAIN void call(void (*kernel)(P...)) {
  if constexpr (sizeof...(A) == sizeof...(P)) call_with<A...>(kernel, typename MakePlaces<sizeof...(P)>::type());
}
}  // namespace opsmith
