/* peaks THREADS: the most that so many threads can do together. Prints rows: `gflops DTYPE FIGURE`, then
   `bandwidth BYTES READ TRIAD` (GB/s; the bytes of all threads). Every figure is the best of several short runs: what
   disturbs can only slow down. Threads begin each figure together, and their best ones are added. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

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

/* Sums of products of 8-bit numbers, in one instruction where there is one, else of the numbers widened to 16 bits. */
#define DEFINE_PRODUCTS(NAME, TARGET, V, ZERO, ADD_PRODUCTS, COUNT)           \
  TARGET static __attribute__((noinline)) void NAME##_sums(void) {            \
    V sum[COUNT], left = ZERO, right = ZERO;                                  \
    for (int s = 0; s < COUNT; s++) sum[s] = ZERO;                            \
    __asm__ volatile("" : "+m"(left), "+m"(right));                           \
    for (int step = 0; step < 1000; step++)                                   \
      _Pragma("GCC unroll 20") for (int s = 0; s < COUNT; s++) sum[s] = ADD_PRODUCTS(sum[s], left, right); \
    for (int s = 0; s < COUNT; s++) __asm__ volatile("" : : "m"(sum[s]));     \
  }                                                                           \
  static double NAME##_gflops(double products) {                              \
    double seconds;                                                           \
    FASTEST(seconds, RUNS, NAME##_sums());                                    \
    return 2.0 * 1000 * COUNT * products / seconds * 1e-9;                    \
  }

#if defined(__x86_64__)
#define ADD_BYTES(sum, left, right) _mm512_dpbusd_epi32(sum, left, right)
DEFINE_PRODUCTS(vnni, __attribute__((target("avx512f,avx512vnni"))), __m512i, _mm512_setzero_si512(), ADD_BYTES, 20)
#if defined(__AVX512BW__)
#define ADD_PAIRS(sum, left, right) _mm512_add_epi32(sum, _mm512_madd_epi16(left, right))
DEFINE_PRODUCTS(pairs, , __m512i, _mm512_setzero_si512(), ADD_PAIRS, 12)
#elif defined(__AVX2__)
#define ADD_PAIRS(sum, left, right) _mm256_add_epi32(sum, _mm256_madd_epi16(left, right))
DEFINE_PRODUCTS(pairs, , __m256i, _mm256_setzero_si256(), ADD_PAIRS, 6)
#else
#define ADD_PAIRS(sum, left, right) _mm_add_epi32(sum, _mm_madd_epi16(left, right))
DEFINE_PRODUCTS(pairs, , __m128i, _mm_setzero_si128(), ADD_PAIRS, 6)
#endif
static double int8_gflops(void) {
  double wide = pairs_gflops(WIDTH / 2), narrow = __builtin_cpu_supports("avx512vnni") ? vnni_gflops(64) : 0;
  return wide > narrow ? wide : narrow;
}
#elif defined(__ARM_FEATURE_DOTPROD)
#define ADD_DOTS(sum, left, right) vdotq_s32(sum, vreinterpretq_s8_s32(left), vreinterpretq_s8_s32(right))
DEFINE_PRODUCTS(dots, , int32x4_t, vdupq_n_s32(0), ADD_DOTS, 12)
static double int8_gflops(void) { return dots_gflops(16); }
#else
static double int8_gflops(void) { return 0; }
#endif

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

enum { SIZES = 7, MOST_THREADS = 64 };
static const long sizes[SIZES] = {16L << 10, 128L << 10, 512L << 10, 2L << 20, 8L << 20, 32L << 20, 128L << 20};
static struct figures { double fp32, fp64, int8, reading[SIZES], streaming[SIZES]; } all[MOST_THREADS];
static pthread_barrier_t together;
static int threads;

/* A thread's part of a working set, in rows of all loops. */
static long count_rows(int n) { return sizes[n] / threads / WIDTH / 24 * 24; }

static void *measure(void *own) {
  struct figures *figures = own;
  row *memory = aligned_alloc(4096, sizes[SIZES - 1] / threads / 4096 * 4096 + 4096);
  if (!memory) exit(1);
  for (long k = 0; k < count_rows(SIZES - 1); k++) memory[k] = (row){0} + 1.0f;
  pthread_barrier_wait(&together);
  figures->fp32 = fp32_gflops();
  pthread_barrier_wait(&together);
  figures->fp64 = fp64_gflops();
  pthread_barrier_wait(&together);
  figures->int8 = int8_gflops();
  for (int n = 0; n < SIZES; n++) {
    long rows = count_rows(n), third = rows / 3;
    double reading, streaming;
    pthread_barrier_wait(&together);
    FASTEST(reading, STREAM_RUNS, read_all(memory, rows));
    pthread_barrier_wait(&together);
    FASTEST(streaming, STREAM_RUNS, triad(memory, memory + third, memory + 2 * third, third));
    figures->reading[n] = 1e-9 * rows * WIDTH / reading;
    figures->streaming[n] = 1e-9 * 3 * third * WIDTH / streaming;
  }
  return NULL;
}

static double add_all(double *first) {
  double sum = 0;
  for (int t = 0; t < threads; t++) sum += *(double *)((char *)first + t * sizeof(struct figures));
  return sum;
}

int main(int count, char **words) {
  pthread_t handles[MOST_THREADS];
  threads = count > 1 ? atoi(words[1]) : 1;
  if (threads < 1 || threads > MOST_THREADS) return 2;
  pthread_barrier_init(&together, NULL, threads);
  for (int t = 1; t < threads; t++)
    if (pthread_create(&handles[t], NULL, measure, &all[t])) return 1;
  measure(&all[0]);
  for (int t = 1; t < threads; t++) pthread_join(handles[t], NULL);
  printf("gflops fp32 %.4f\ngflops fp64 %.4f\n", add_all(&all->fp32), add_all(&all->fp64));
  if (all->int8 > 0) printf("gflops int8 %.4f\n", add_all(&all->int8));
  for (int n = 0; n < SIZES; n++)
    printf("bandwidth %ld %.4f %.4f\n", sizes[n], add_all(&all->reading[n]), add_all(&all->streaming[n]));
  return 0;
}
