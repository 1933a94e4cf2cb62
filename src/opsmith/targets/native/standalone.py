"""A program as an executable that calls its function once on given data and ends: what tools that watch a process run.

The data comes on the standard input, as `sanitized.write_calls` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.errors import OpsmithError
from opsmith.running.compiler import Artefact, CompileFailure, CompileOrder, run_compiler
from opsmith.targets.native.build import HEADER, SOURCE, BuildRequest
from opsmith.targets.native.flags import BuildFlags, Isa
from opsmith.targets.native.layout import read_inputs
from opsmith.targets.native.sanitized import CallData, write_calls
from opsmith.targets.native.signature import FUNCTION, Signature
from opsmith.targets.programs import StandaloneProgram

WIDEST = "x86-64-v3"  # that tools know which simulate instructions: valgrind 3.19 ends at one of AVX-512
_DRIVER, _PROGRAM = "driver.c", "standalone"
_TEXT = """#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {{ ARRAYS = {arrays}, INPUTS = {inputs}, NUMBERS = {numbers} }};

static void read_bytes(void *place, size_t size) {{
  for (char *next = place; size > 0;) {{
    ssize_t got = read(0, next, size);
    if (got <= 0) _exit(9);
    next += got;
    size -= (size_t)got;
  }}
}}
static int64_t read_number(void) {{
  int64_t number;
  read_bytes(&number, sizeof number);
  return number;
}}
static double as_double(int64_t bits) {{
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}}
int main(void) {{
  char *array[ARRAYS];
  int64_t number[NUMBERS + 1];
  (void)as_double;
  for (int64_t draws = read_number(); draws > 0; draws--) {{
    for (int i = 0; i < ARRAYS; i++) {{
      size_t size = (size_t)read_number();
      array[i] = aligned_alloc(64, (size + 127) / 64 * 64);
      if (!array[i]) _exit(9);
      if (i < INPUTS) read_bytes(array[i], size);
    }}
    for (int i = 0; i < NUMBERS; i++) number[i] = read_number();
    {function}({arguments});
  }}
  return 0;
}}
"""


class StandaloneError(OpsmithError):
    """The program could not be built as an executable."""


def build_standalone(request: BuildRequest, inputs: bytes | memoryview) -> StandaloneProgram:
    """`inputs`: those of a trial; the first draw is taken. Raises StandaloneError."""
    flags = _narrow_flags(request.flags)
    layout, arrays = read_inputs(memoryview(inputs))
    draw = layout.draws[0]
    calls = write_calls([CallData(arrays[0], draw.outputs, draw.numbers)])
    files = {
        SOURCE: request.source.encode("utf-8", "replace"),
        HEADER: request.signature.header.encode(),
        _DRIVER: _write_driver(request.signature).encode(),
    }
    libraries = [flag for flag in flags.link_flags if flag.startswith("-l") or flag == "-fopenmp"]
    quiet = [flag for flag in flags.compile_flags if not flag.startswith("-W")]
    command = [*quiet, "-g", "-w", "-include", HEADER, SOURCE, _DRIVER, "-o", _PROGRAM, *libraries]
    result = run_compiler(CompileOrder(files, (command,), _PROGRAM))
    if not isinstance(result, Artefact):
        reason = result.reason if isinstance(result, CompileFailure) else (result.limit or result.messages)
        raise StandaloneError(f"the program was not built: {' '.join(reason.split())[:300]}")
    return StandaloneProgram(result.data, calls, flags.isa.name, SOURCE)


def _narrow_flags(flags: BuildFlags) -> BuildFlags:
    return BuildFlags(Isa(WIDEST), flags.flags, flags.has_threads) if flags.isa.name == "x86-64-v4" else flags


def _write_driver(signature: Signature) -> str:
    pointers = [argument for argument in signature.arguments if "*" in argument.c_type]
    numbers = [argument for argument in signature.arguments if "*" not in argument.c_type]
    return _TEXT.format(
        arrays=len(pointers),
        inputs=sum(argument.c_type.startswith("const ") for argument in pointers),
        numbers=len(numbers),
        function=FUNCTION,
        arguments=", ".join([*_list_arrays(len(pointers)), *_list_numbers([n.c_type for n in numbers])]),
    )


def _list_arrays(count: int) -> list[str]:
    return [f"(void *)array[{place}]" for place in range(count)]


def _list_numbers(types: Sequence[str]) -> list[str]:
    return [f"as_double(number[{n}])" if c_type == "double" else f"number[{n}]" for n, c_type in enumerate(types)]
