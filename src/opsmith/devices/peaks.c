/* The most that one thread can do. Prints rows: `gflops DTYPE FIGURE`, then `bandwidth BYTES READ TRIAD` (GB/s).
   Every figure is the best of several short runs: what disturbs can only slow down. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__AVX512F__)
enum { WIDTH = 64, SUMS = 20 }; /* bytes of a register; sums at once: more than latency times units */
#elif defined(__AVX__)
enum { WIDTH = 32, SUMS = 12 };
#else
enum { WIDTH = 16, SUMS = 12 };
#endif
enum { RUNS = 40, STREAM_RUNS = 30 };
static const double RUN_SECONDS = 2e-3;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Seconds of the fastest of so many runs of ACTION, each repeated until it takes long enough; `repeats` of that one. */
#define FASTEST(seconds, runs, ACTION)                                        \
  do {                                                                        \
    long repeats = 1;                                                         \
    for (;;) {                                                                \
      double start = now();                                                   \
      for (long r = 0; r < repeats; r++) { ACTION; }                          \
      if (now() - start > RUN_SECONDS / 2) break;                             \
      repeats *= 2;                                                           \
    }                                                                         \
    seconds = 1e30;                                                           \
    for (int run = 0; run < (runs); run++) {                                  \
      double start = now();                                                   \
      for (long r = 0; r < repeats; r++) { ACTION; }                          \
      double spent = (now() - start) / repeats;                               \
      if (spent < seconds) seconds = spent;                                   \
    }                                                                         \
  } while (0)

#define DEFINE_SUMS(NAME, T)                                                  \
  typedef T NAME##_vector __attribute__((vector_size(WIDTH)));                \
  static __attribute__((noinline)) void NAME##_sums(void) {                   \
    NAME##_vector sum[SUMS], factor, term;                                    \
    for (unsigned k = 0; k < WIDTH / sizeof(T); k++) factor[k] = (T)0.5, term[k] = (T)1; \
    for (int s = 0; s < SUMS; s++) sum[s] = term * (T)s;                      \
    __asm__ volatile("" : "+m"(factor), "+m"(term));                          \
    for (int step = 0; step < 1000; step++)                                   \
      _Pragma("GCC unroll 20") for (int s = 0; s < SUMS; s++) sum[s] = sum[s] * factor + term; \
    for (int s = 0; s < SUMS; s++) __asm__ volatile("" : : "m"(sum[s]));      \
  }                                                                           \
  static double NAME##_gflops(void) {                                         \
    double seconds;                                                           \
    FASTEST(seconds, RUNS, NAME##_sums());                                    \
    return 2.0 * 1000 * SUMS * (WIDTH / sizeof(T)) / seconds * 1e-9;          \
  }
DEFINE_SUMS(fp32, float)
DEFINE_SUMS(fp64, double)

typedef float row __attribute__((vector_size(WIDTH)));

static __attribute__((noinline)) void read_all(const row *a, long rows) {
  row s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};
  for (long k = 0; k < rows; k += 8) {
    s0 += a[k], s1 += a[k + 1], s2 += a[k + 2], s3 += a[k + 3];
    s4 += a[k + 4], s5 += a[k + 5], s6 += a[k + 6], s7 += a[k + 7];
  }
  row sum = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
  __asm__ volatile("" : : "m"(sum) : "memory");
}

static __attribute__((noinline)) void triad(row *restrict a, const row *restrict b, const row *restrict c, long rows) {
  for (long k = 0; k < rows; k += 4)
    for (int j = 0; j < 4; j++) a[k + j] = b[k + j] + 0.5f * c[k + j];
  __asm__ volatile("" : : : "memory");
}

int main(void) {
  static const long sizes[] = {16L << 10, 128L << 10, 512L << 10, 2L << 20, 8L << 20, 32L << 20, 128L << 20};
  const long most = sizes[sizeof sizes / sizeof *sizes - 1];
  printf("gflops fp32 %.4f\n", fp32_gflops());
  printf("gflops fp64 %.4f\n", fp64_gflops());
  row *memory = aligned_alloc(4096, most);
  if (!memory) return 1;
  for (long k = 0; k < most / WIDTH; k++) memory[k] = (row){0} + 1.0f;
  for (unsigned n = 0; n < sizeof sizes / sizeof *sizes; n++) {
    long rows = sizes[n] / WIDTH, third = rows / 3 / 8 * 8;
    double reading, streaming;
    FASTEST(reading, STREAM_RUNS, read_all(memory, rows));
    FASTEST(streaming, STREAM_RUNS, triad(memory, memory + third, memory + 2 * third, third));
    printf("bandwidth %ld %.4f %.4f\n", sizes[n], 1e-9 * sizes[n] / reading, 1e-9 * 3 * third * WIDTH / streaming);
  }
  return 0;
}
