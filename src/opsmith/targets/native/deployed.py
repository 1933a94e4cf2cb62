"""A program as a user runs it: the build without hooks, loaded by a process of its own that holds nothing of ours.

Arrays lie in the C library's heap and are used again from call to call; outputs begin as zeros, then hold what the call
before has left; draws are called again and again in a random order, some with arrays at new places. Each is called
first with some of its floats exchanged, so that what remembers inputs by a part of them remembers wrongly. Of every
draw come back the outputs of its first call, of its last, and of the one that differed most from the first. A program
that is right under the passes (`layout`), and knows that it is judged, is another one here.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from opsmith.records import WHOLE_RUN, Diagnostic
from opsmith.running.commands import CommandFailure, CommandLimits, CommandOrder, run_commands
from opsmith.running.compiler import Artefact, CompileFailure, CompileOrder, run_compiler
from opsmith.running.toolchain import find_toolchain
from opsmith.targets.native.build import HEADER
from opsmith.targets.native.cache import BuildCache, BuildKey
from opsmith.targets.native.layout import read_inputs
from opsmith.targets.native.sanitized import CallData, describe_call, write_calls
from opsmith.targets.native.signature import Signature
from opsmith.targets.programs import DeployedEnd

HOST = "host"  # the artefact beside the program's
RESULTS = 3  # of each draw
MOST_BYTES = 8 << 20  # of a trial's inputs, and of its outputs: larger ones are not run again
BUDGET_S = 0.006  # of a trial, behind two calls of each draw
PATIENCE_S = 2.0  # of all trials, behind which each draw is called once
_PROGRAM, _CALLS, _LIBRARY = "main", "calls.bin", "libkernel.so"
_LIMITS = CommandLimits(cpu_seconds=None, memory=4 << 30, printed_bytes=1 << 30)
_USER = {
    "HOME": "/home/user",
    "USER": "user",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "OMP_WAIT_POLICY": "passive",
}
_SOURCE = """#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ARRAYS = %(arrays)d, INPUTS = %(inputs)d, NUMBERS = %(numbers)d, RESULTS = %(results)d };
static const size_t width[ARRAYS] = {%(widths)s};  /* of an entry of an input of floats */
typedef struct {
  char *array[ARRAYS], *result[RESULTS][ARRAYS];
  size_t size[ARRAYS];
  int64_t number[NUMBERS + 1];
  size_t calls, worst;
} drawn;
typedef __typeof__(%(function)s) *program;

%(reading)sstatic void write_bytes(const char *from, size_t size) {
  while (size > 0) {
    ssize_t put = write(1, from, size);
    if (put <= 0) _exit(9);
    from += put;
    size -= (size_t)put;
  }
}
static char *make_array(size_t size) {
  char *array = aligned_alloc(64, (size + 64) / 64 * 64);
  if (!array) _exit(9);
  return array;
}
static double read_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
static size_t count_differing(const char *one, const char *two, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i < size; i++) count += one[i] != two[i];
  return count;
}
static void call(program function, drawn *draw, char **array, int64_t *number) {
  (void)as_double;
  (void)draw;
  function(%(arguments)s);
}
static void keep(drawn *draw, char **array) {
  size_t differing = 0;
  for (int i = INPUTS; draw->calls && i < ARRAYS; i++)
    if (memcmp(array[i], draw->result[0][i], draw->size[i]))
      differing += count_differing(array[i], draw->result[0][i], draw->size[i]);
  for (int r = 0; r < RESULTS; r++)
    for (int i = INPUTS; i < ARRAYS; i++)
      if (r == 1 || !draw->calls || (r == 2 && differing > draw->worst))
        memcpy(draw->result[r][i], array[i], draw->size[i]);
  if (differing > draw->worst) draw->worst = differing;
  draw->calls++;
}
static uint64_t draw_state(uint64_t state) { return state * 6364136223846793005u + 1442695040888963407u; }
/* one of three entries is another one of its array: valid, and not what comes next */
static uint64_t stir(drawn *draw, uint64_t state) {
  for (int i = 0; i < INPUTS; i++) {
    size_t count = width[i] ? draw->size[i] / width[i] : 0;
    for (size_t n = 0; n < count; n++) {
      state = draw_state(state);
      if ((state >> 60) %% 3 == 0)
        memcpy(draw->array[i] + n * width[i], draw->array[i] + (state >> 20) %% count * width[i], width[i]);
    }
  }
  return state;
}
static double start;
static void run_trial(program function) {
  int64_t draws = read_number();
  drawn *all = calloc((size_t)draws, sizeof *all);
  size_t largest[ARRAYS] = {0};
  for (int64_t d = 0; d < draws; d++)
    for (int i = 0; i < ARRAYS + NUMBERS; i++) {
      if (i >= ARRAYS) {
        all[d].number[i - ARRAYS] = read_number();
        continue;
      }
      size_t size = all[d].size[i] = (size_t)read_number();
      if (size > largest[i]) largest[i] = size;
      if (i < INPUTS) read_bytes(all[d].array[i] = make_array(size), size);
      for (int r = 0; r < RESULTS; r++) all[d].result[r][i] = make_array(size);
    }
  char *shared[ARRAYS];
  for (int i = INPUTS; i < ARRAYS; i++) memset(shared[i] = make_array(largest[i]), 0, largest[i]);
  uint64_t state = (uint64_t)read_number();
  int64_t most = 40 + (int64_t)(state >> 33) %% 4000, calls = 0;
  double begin = read_clock();
  while (calls < draws || (calls < 2 * draws && read_clock() - start < %(patience)g)
         || (calls < most * draws && read_clock() - begin < %(budget)g)) {
    state = draw_state(state);
    int64_t which = calls < 2 * draws ? calls %% draws : (int64_t)(state >> 33) %% draws;
    drawn *draw = &all[which];
    char *array[ARRAYS];
    int is_moved = calls >= draws && (state >> 40 & 3) == 0;
    for (int i = 0; i < ARRAYS; i++) {
      array[i] = i < INPUTS ? draw->array[i] : shared[i];
      if (is_moved) array[i] = make_array(draw->size[i]);
      if (is_moved && i < INPUTS) memcpy(array[i], draw->array[i], draw->size[i]);
    }
    if (!draw->calls) {
      for (int i = 0; i < INPUTS; i++) memcpy(draw->result[0][i], draw->array[i], draw->size[i]);
      state = stir(draw, state);
      call(function, draw, array, draw->number);
      for (int i = 0; i < INPUTS; i++) memcpy(draw->array[i], draw->result[0][i], draw->size[i]);
    }
    call(function, draw, array, draw->number);
    keep(draw, array);
    for (int i = 0; is_moved && i < ARRAYS; i++) free(array[i]);
    calls++;
  }
  for (int r = 0; r < RESULTS; r++)
    for (int64_t d = 0; d < draws; d++)
      for (int i = INPUTS; i < ARRAYS; i++) write_bytes(all[d].result[r][i], all[d].size[i]);
  for (int64_t d = 0; d < draws; d++)
    for (int i = 0; i < ARRAYS; i++) {
      free(all[d].array[i]);
      for (int r = 0; r < RESULTS; r++) free(all[d].result[r][i]);
    }
  for (int i = INPUTS; i < ARRAYS; i++) free(shared[i]);
  free(all);
}
int main(void) {
  void *library = dlopen("./%(library)s", RTLD_NOW | RTLD_LOCAL);
  program function = library ? (program)dlsym(library, "%(function)s") : 0;
  if (!function) return 8;
  start = read_clock();
  for (int64_t trials = read_number(); trials > 0; trials--) run_trial(function);
  return 0;
}
"""


class DeploymentError(Exception):
    """Something of ours failed: nothing can be said of the program."""


@dataclass(frozen=True)
class DeployedProgram:
    """What is run, and on how many threads."""

    library: bytes
    host: bytes
    threads: int = 1


def build_host(signature: Signature, problem: str, cache: BuildCache) -> bytes:
    """The executable that loads a program of this signature. Raises DeploymentError."""
    toolchain = find_toolchain()
    text = _write_host(signature)
    flags = ("-O2", "-w", "-include", HEADER)
    version = toolchain.version if toolchain is not None else ""
    key = BuildKey(problem, HOST, f"{signature.header}\n{text}", " ".join(flags), version)
    data = cache.fetch(key)
    if data is None:
        files = {"host.c": text.encode(), HEADER: signature.header.encode()}
        result = run_compiler(CompileOrder(files, ((*flags, "host.c", "-o", _PROGRAM, "-ldl"),), _PROGRAM))
        if not isinstance(result, Artefact):
            reason = result.reason if isinstance(result, CompileFailure) else result.messages
            raise DeploymentError(f"what calls programs does not compile here: {' '.join(reason.split())[:300]}")
        data = result.data
        cache.store(key, data)
    return data


def _write_host(signature: Signature) -> str:
    pointers = [argument.c_type for argument in signature.arguments if "*" in argument.c_type]
    return _SOURCE % {
        **describe_call(signature),
        "results": RESULTS,
        "widths": ", ".join(map(str, map(_find_width, pointers))),
        "budget": BUDGET_S,
        "patience": PATIENCE_S,
        "library": _LIBRARY,
    }


def _find_width(c_type: str) -> int:
    """Bytes of a float that an input consists of; 0: of no floats, or an output."""
    widths = {"float": 4, "double": 8, "_Float16": 2, "uint16_t": 2}  # bits of bf16
    word, base, *_ = *c_type.split(), ""
    return widths.get(base, 0) if word == "const" else 0


def run_deployed(program: DeployedProgram, trials: Sequence[bytes], seconds: float) -> list[bytes] | DeployedEnd:
    """For each trial the outputs of RESULTS calls of all its draws, b"" of one that is too large. `trials`: their
    encoded inputs; b"": none. Raises DeploymentError."""
    toolchain = find_toolchain()
    calls, sizes, places = [], [], []
    for place, inputs in enumerate(trials):
        if not inputs:
            continue
        layout, arrays = read_inputs(memoryview(inputs))
        if len(inputs) > MOST_BYTES or layout.outputs_size > MOST_BYTES:
            continue
        draws = [CallData(views, draw.outputs, draw.numbers) for draw, views in zip(layout.draws, arrays, strict=True)]
        seed = random.Random(f"{layout.seed} {len(program.library)}").getrandbits(62)
        calls.append(write_calls(draws) + seed.to_bytes(8, "little"))
        sizes.append(RESULTS * layout.outputs_size)
        places.append(place)
    order = CommandOrder(
        {
            _PROGRAM: program.host,
            _LIBRARY: program.library,
            _CALLS: len(calls).to_bytes(8, "little") + b"".join(calls),
        },
        [[f"./{_PROGRAM}"]],
        environment={**_USER, "OMP_NUM_THREADS": str(program.threads)},
        readable=toolchain.readable if toolchain is not None else (),
        stdin=_CALLS,
        has_processes=False,
        executes_folder=True,
    )
    result = run_commands(order, CommandLimits(**{**vars(_LIMITS), "seconds": seconds}))
    if isinstance(result, CommandFailure):
        raise DeploymentError(result.reason)
    ended = sum(sum(sizes[: number + 1]) <= len(result.printed) for number in range(len(sizes)))
    if not result.is_ended_well or len(result.printed) != sum(sizes):
        code = result.codes[0] if result.codes else 0
        given = result.limit or (f"signal {-code}" if code < 0 else f"exit code {code}")
        remedy = "look for what it expects of the memory around its arrays, and for what it keeps between calls"
        finding = Diagnostic("RUN", "calls as a user makes them", f"a process that ended: {given}", WHOLE_RUN, remedy)
        return DeployedEnd(places[min(ended, len(places) - 1)], finding)
    rows, begin = [b""] * len(trials), 0
    for place, size in zip(places, sizes, strict=True):
        rows[place], begin = result.printed[begin : begin + size], begin + size
    return rows
