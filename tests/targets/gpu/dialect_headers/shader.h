// A small language that is no CUDA: kernels are marked, memory is named by its owner, threads are numbered.
#pragma once
#include "opsmith_runtime.h"

#define compute_kernel
#define everywhere
#define team static OPSMITH_SECTION(__COUNTER__)
#define member opsmith_thread_x()
#define await_team() opsmith_barrier(__builtin_LINE(), 0, 0)

#include "opsmith_call.h"
