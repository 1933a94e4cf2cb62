/* The functions of NVIDIA's driver that the runner calls, over the host's memory: what they check is in which order they
   are called and with what. An image is the path of a library; a kernel in it is
     int NAME(void **parameters, const unsigned *launch)      launch: grid, block, shared; a result is an error's number
   beside   const long NAME_sizes[]   which ends with 0: the bytes of each parameter. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, NO_DEVICE = 100, INVALID_IMAGE = 200, INVALID_CONTEXT = 201,
       NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };
typedef struct { int (*call)(void **, const unsigned *); const long *sizes; long dynamic_shared; } Function;
typedef struct { int is_recorded; struct timespec time; } Event;
static int is_initialized, has_context, sticky, is_pending;
static size_t allocated;

static size_t read_limit(void) { const char *text = getenv("STAND_IN_MEMORY"); return text ? strtoul(text, 0, 10) : 1ul << 30; }
static int check_state(void) { return !is_initialized ? NOT_INITIALIZED : !has_context ? INVALID_CONTEXT : sticky; }

int cuInit(unsigned flags) { if (getenv("STAND_IN_HANGS")) for (;;) ; if (flags) return INVALID_VALUE; is_initialized = 1; return OK; }
int cuDriverGetVersion(int *version) { *version = 13000; return OK; }
int cuDeviceGetCount(int *count) { *count = 1; return is_initialized ? OK : NOT_INITIALIZED; }
int cuDeviceGet(int *device, int index) { *device = index; return index == 0 ? OK : NO_DEVICE; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "Stand-in %d", device); return OK; }
int cuDeviceTotalMem_v2(size_t *size, int device) { *size = read_limit(); return device ? NO_DEVICE : OK; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
    case 16: *value = 2; break;
    case 75: *value = 9; break;
    case 76: *value = 0; break;
    case 38: *value = 1 << 16; break;
    default: *value = 1; break;
  }
  return device ? NO_DEVICE : OK;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &has_context; return is_initialized && !device ? OK : NOT_INITIALIZED; }
int cuCtxSetCurrent(void *context) { has_context = context == &has_context; return has_context ? OK : INVALID_CONTEXT; }
int cuCtxSynchronize(void) { is_pending = 0; return check_state(); }

int cuMemAlloc_v2(uint64_t *pointer, size_t size) {
  if (check_state()) return check_state();
  if (!size) return INVALID_VALUE;
  if (allocated + size > read_limit()) return OUT_OF_MEMORY;
  allocated += size;
  *pointer = (uint64_t)(uintptr_t)malloc(size);
  return OK;
}
int cuMemFree_v2(uint64_t pointer) { free((void *)(uintptr_t)pointer); return check_state(); }
int cuMemcpyHtoD_v2(uint64_t target, const void *source, size_t size) { if (!check_state()) memcpy((void *)target, source, size); return check_state(); }
int cuMemcpyDtoH_v2(void *target, uint64_t source, size_t size) { if (!check_state()) memcpy(target, (void *)source, size); return check_state(); }
int cuMemcpyDtoD_v2(uint64_t target, uint64_t source, size_t size) { if (!check_state()) memcpy((void *)target, (void *)source, size); return check_state(); }
int cuMemsetD8_v2(uint64_t target, unsigned char byte, size_t size) { if (!check_state()) memset((void *)target, byte, size); return check_state(); }

int cuModuleLoadData(void **module, const void *image) {
  if (check_state()) return check_state();
  *module = dlopen(image, RTLD_NOW | RTLD_LOCAL);
  return *module ? OK : INVALID_IMAGE;
}
int cuModuleGetFunction(Function **function, void *module, const char *name) {
  char sizes[256];
  snprintf(sizes, sizeof sizes, "%s_sizes", name);
  Function *result = calloc(1, sizeof *result);
  result->call = (int (*)(void **, const unsigned *))dlsym(module, name);
  result->sizes = dlsym(module, sizes);
  result->dynamic_shared = 48 << 10;
  *function = result;
  return result->call ? OK : NOT_FOUND;
}
int cuFuncGetParamInfo(Function *function, size_t place, size_t *offset, size_t *size) {
  for (size_t i = 0; i <= place; i++) if (!function->sizes[i]) return INVALID_VALUE;
  *offset = 8 * place;
  *size = (size_t)function->sizes[place];
  return OK;
}
int cuFuncSetAttribute(Function *function, int attribute, int value) {
  if (attribute != 8 || value > 227 << 10) return INVALID_VALUE;
  function->dynamic_shared = value;
  return OK;
}
int cuFuncGetAttribute(int *value, int attribute, Function *function) { *value = attribute == 0 ? 1024 : attribute == 4 ? 32 : 0; return function ? OK : INVALID_VALUE; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function *function, int threads, size_t shared) {
  (void)shared;
  *blocks = 2048 / threads;
  return function ? OK : INVALID_VALUE;
}
int cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
  unsigned launch[7] = {gx, gy, gz, bx, by, bz, shared};
  if (check_state()) return check_state();
  if (stream || extra || !gx || !gy || !gz || bx * by * bz > 1024 || shared > function->dynamic_shared) return INVALID_VALUE;
  is_pending = 1;
  int result = function->call(parameters, launch);
  if (result) sticky = result;
  return OK; /* as on a device: the error comes with the next synchronisation */
}
int cuEventCreate(Event **event, unsigned flags) { *event = calloc(1, sizeof **event); return flags ? INVALID_VALUE : check_state(); }
int cuEventRecord(Event *event, void *stream) {
  event->is_recorded = 1;
  clock_gettime(CLOCK_MONOTONIC, &event->time);
  return stream ? INVALID_VALUE : check_state();
}
int cuEventElapsedTime(float *ms, Event *first, Event *second) {
  if (!first->is_recorded || !second->is_recorded) return INVALID_VALUE;
  if (is_pending) return NOT_READY;
  *ms = (second->time.tv_sec - first->time.tv_sec) * 1e3f + (second->time.tv_nsec - first->time.tv_nsec) * 1e-6f;
  return check_state();
}
int cuGetErrorName(int error, const char **name) {
  *name = error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : error == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
        : error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : error == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND"
        : error == INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : error == INVALID_IMAGE ? "CUDA_ERROR_INVALID_IMAGE" : 0;
  return *name ? OK : INVALID_VALUE;
}
