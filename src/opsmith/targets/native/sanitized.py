"""The program that calls a candidate's function under a sanitizer: a driver in C, and the file that it reads.

The driver reads draws from its standard input and calls the function on each in turn. Every array is exactly as long as
its tensor: the bytes behind and before it are poisoned for a stretch and not mapped for a longer one, so that an access
at a wrong index is seen whichever way it misses. Inputs are read-only. Before each call it says on the standard error
where the arrays lie, and behind it whether the direction flag is set, under which nothing of ours would work. The
calls are made in a thread: of a first one the sanitizer would look up the stack's bounds in a file that it may not
read. What the sanitizer says is `sanitizer_report`'s to read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opsmith.targets.native.flags import BuildFlags
from opsmith.targets.native.signature import FUNCTION, Signature

DRIVER, PROGRAM = "driver.c", "explain"
DIRECTION = "opsmith direction flag"  # a line: the function returned with it set
REACH = 64 << 20  # bytes before and behind an array where an access is known to be meant for it

_INSTRUMENTATION = ("-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined")
_NUMBER = struct.Struct("=q")
READING = """static void read_bytes(void *place, size_t size) {
  for (char *next = place; size > 0;) {
    ssize_t got = read(0, next, size);
    if (got <= 0) _exit(9);
    next += got;
    size -= (size_t)got;
  }
}
static int64_t read_number(void) {
  int64_t number;
  read_bytes(&number, sizeof number);
  return number;
}
static double as_double(int64_t bits) {
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}
"""
_DRIVER = """#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <sanitizer/asan_interface.h>

enum { ARRAYS = %(arrays)d, INPUTS = %(inputs)d, NUMBERS = %(numbers)d };
static const size_t reach = %(reach)dul, poison = 1ul << 20, page = 1ul << 16;

const char *__asan_default_options(void) {
  return "detect_leaks=0:disable_coredump=0:color=never:print_legend=0:allocator_may_return_null=1:symbolize=1"
         ":max_allocation_size_mb=%(largest)d:detect_stack_use_after_return=1:print_summary=0";
}
const char *__ubsan_default_options(void) { return "color=never:print_summary=0"; }

%(reading)sstatic size_t round_up(size_t size) { return (size + page - 1) / page * page; }
static char *make_array(size_t size, int is_input) {
  size_t whole = 2 * reach + round_up(size);
  char *region = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED || mprotect(region + reach, round_up(size), PROT_READ | PROT_WRITE)) _exit(9);
  char *array = region + reach;
  if (is_input) read_bytes(array, size);
  if (is_input) mprotect(array, round_up(size), PROT_READ);
  __asan_poison_memory_region(array - poison, poison);
  __asan_poison_memory_region(array + size, round_up(size) - size + poison);
  return array;
}
static void free_array(char *array, size_t size) {
  __asan_unpoison_memory_region(array - poison, round_up(size) + 2 * poison);
  munmap(array - reach, 2 * reach + round_up(size));
}
static void look_at_flags(void) {
#if defined(__x86_64__)
  if (!(__builtin_ia32_readeflags_u64() & 0x400)) return;
  __asm__ volatile("cld");  /* what copies memory would go backwards */
  fputs("%(direction)s\\n", stderr);
  _exit(9);
#endif
}
static void *make_calls(void *unused) {
  char *array[ARRAYS];
  size_t size[ARRAYS];
  int64_t number[NUMBERS + 1];
  for (int64_t draws = read_number(); draws > 0; draws--) {
    for (int i = 0; i < ARRAYS; i++) {
      size[i] = (size_t)read_number();
      array[i] = make_array(size[i], i < INPUTS);
      fprintf(stderr, "opsmith array %%d %%llx %%llu\\n", i, (unsigned long long)array[i], (unsigned long long)size[i]);
    }
    for (int i = 0; i < NUMBERS; i++) number[i] = read_number();
    %(function)s(%(arguments)s);
    look_at_flags();
    for (int i = 0; i < ARRAYS; i++) free_array(array[i], size[i]);
  }
  (void)as_double;
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) || pthread_attr_setstacksize(&attributes, 8ul << 20)) return 9;
  if (pthread_create(&thread, &attributes, make_calls, NULL)) return 9;
  pthread_join(thread, NULL);
  return 0;
}
"""


@dataclass(frozen=True)
class CallData:
    """What one call of the function gets."""

    inputs: Sequence[bytes | memoryview]  # of every input, row-major
    outputs: Sequence[int]  # bytes of every output
    numbers: Sequence[int | float]  # sizes, then scalars, in the order of the signature


def write_driver(signature: Signature, largest: int) -> str:
    """The C text; `largest`: MiB that one allocation of the candidate may have."""
    return _DRIVER % {**describe_call(signature), "reach": REACH, "largest": largest, "direction": DIRECTION}


def describe_call(signature: Signature) -> dict[str, int | str]:
    """What a program says that calls the function: it has `array` and `number`, and reads them as READING does."""
    pointers = [argument for argument in signature.arguments if "*" in argument.c_type]
    numbers = [argument for argument in signature.arguments if "*" not in argument.c_type]
    arguments = [f"(void *)array[{place}]" for place in range(len(pointers))]
    for place, argument in enumerate(numbers):
        arguments.append(f"as_double(number[{place}])" if argument.c_type == "double" else f"number[{place}]")
    return {
        "arrays": len(pointers),
        "inputs": sum(argument.c_type.startswith("const ") for argument in pointers),
        "numbers": len(numbers),
        "function": FUNCTION,
        "arguments": ", ".join(arguments),
        "reading": READING,
    }


def write_calls(calls: Sequence[CallData]) -> bytes:
    """What the driver reads."""
    return b"".join([_NUMBER.pack(len(calls)), *(chunk for call in calls for chunk in _list_chunks(call))])


def _list_chunks(call: CallData) -> Iterator[bytes | memoryview]:
    for data in call.inputs:
        yield _NUMBER.pack(memoryview(data).nbytes)
        yield data
    yield from map(_NUMBER.pack, call.outputs)
    for number in call.numbers:
        yield struct.pack("=d", number) if isinstance(number, float) else _NUMBER.pack(number)


def write_commands(flags: BuildFlags, sources: Sequence[str], header: str) -> Sequence[Sequence[str]]:
    """What makes PROGRAM: the flags of the build, but for optimisation, warnings and links of fast-math."""
    compile_flags = [flag for flag in flags.compile_flags if not flag.startswith(("-O", "-W"))]
    libraries = [flag for flag in flags.link_flags if flag.startswith("-l")]
    return [[*compile_flags, *_INSTRUMENTATION, "-include", header, *sources, DRIVER, "-o", PROGRAM, *libraries]]
