/* Kernels for stand_in_driver.c: rows of x [M, N] are summed to y [M], by parameters of several types. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY(type, place) (*(type **)parameters[place])
#define NUMBER(type, place) (*(type *)parameters[place])

const long row_sum_sizes[] = {8, 8, 8, 4, 0};
int row_sum(void **parameters, const unsigned *launch) {
  const float *x = ARRAY(float, 0);
  int64_t columns = NUMBER(int64_t, 2);
  for (unsigned block = 0; block < launch[0]; block++) {
    double sum = 0;
    for (int64_t n = 0; n < columns; n++) sum += x[block * columns + n];
    if ((int)block < NUMBER(int32_t, 3)) ARRAY(float, 1)[block] = (float)sum;
  }
  return 0;
}
const long row_sum_twice_sizes[] = {8, 8, 8, 4, 0};
int row_sum_twice(void **parameters, const unsigned *launch) {
  for (int times = 0; times < 8; times++) row_sum(parameters, launch);
  return 0;
}
const long copy_sizes[] = {8, 8, 8, 0};
int copy(void **parameters, const unsigned *launch) {
  if (launch[6] != 64 << 10 || launch[3] != 256) return 719;
  memcpy(ARRAY(char, 1), ARRAY(char, 0), (size_t)NUMBER(int64_t, 2) * 4);
  return 0;
}
const long stale_sizes[] = {8, 8, 8, 4, 0};
int stale(void **parameters, const unsigned *launch) { /* computes once, and answers that for ever */
  static float answers[1 << 16];
  static int is_known;
  if (!is_known) row_sum(parameters, launch), memcpy(answers, ARRAY(float, 1), launch[0] * 4), is_known = 1;
  memcpy(ARRAY(float, 1), answers, launch[0] * 4);
  return 0;
}
const long lazy_sizes[] = {8, 8, 8, 4, 0};
int lazy(void **parameters, const unsigned *launch) { /* leaves what lies there */
  static int calls;
  return calls++ < 2 ? row_sum(parameters, launch) : 0;
}
const long overrun_sizes[] = {8, 8, 8, 4, 0};
int overrun(void **parameters, const unsigned *launch) {
  row_sum(parameters, launch);
  ARRAY(float, 1)[launch[0]] = 1;
  return 0;
}
const long fault_sizes[] = {8, 8, 8, 4, 0};
int fault(void **parameters, const unsigned *launch) { (void)parameters, (void)launch; return 700; }
const long fail_sizes[] = {8, 8, 8, 4, 0};
int fail(void **parameters, const unsigned *launch) { (void)parameters, (void)launch; return 719; }
const long crash_sizes[] = {8, 8, 8, 4, 0};
int crash(void **parameters, const unsigned *launch) { (void)parameters, (void)launch; abort(); }
const long hang_sizes[] = {8, 8, 8, 4, 0};
int hang(void **parameters, const unsigned *launch) { (void)parameters, (void)launch; for (;;) sleep(1); }
