"""The loop that calls a program while it is timed: a C file of ours, built for the signature of a problem.

It is a library of its own, without the program's flags: the program and its partner are called by the same machine
code, through a pointer, and the clock is read twice a turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.targets.native.calls import ADD, CHOOSE, REORDER, TIME_CALLS
from opsmith.targets.native.signature import FUNCTION, Argument, Signature

_DRIVER = """#include <time.h>
typedef union {{ int64_t whole; double real; }} opsmith_number;
static int64_t opsmith_read_clock(int clock) {{
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}}
int64_t {name}(__typeof__({function}) *program, char *memory, const int64_t *slots, int64_t count,
               const int64_t *places, const opsmith_number *numbers, int clock) {{
  int64_t begin = opsmith_read_clock(clock);
  for (int64_t call = 0; call < count; call++) {{
    char *slot = memory + slots[call];
    program({arguments});
  }}
  return opsmith_read_clock(clock) - begin;
}}
"""

MIXER_SOURCE = f"""#include <string.h>
static uint64_t opsmith_scatter(uint64_t state, uint64_t word) {{
  state = (state ^ word) + UINT64_C(0x9E3779B97F4A7C15);
  state = (state ^ state >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  state = (state ^ state >> 27) * UINT64_C(0x94D049BB133111EB);
  return state ^ state >> 31;
}}
static float opsmith_widen(uint16_t bits) {{
  uint32_t wide = (uint32_t)bits << 16;
  float number;
  memcpy(&number, &wide, 4);
  return number;
}}
#define OPSMITH_ADD(type, wide, read, write) \\
  for (int64_t i = 0; i < count; i++) {{ \\
    wide first = read(((const type *)a)[i]) * (wide)weight_a, second = read(((const type *)b)[i]) * (wide)weight_b; \\
    wide sum = first + second; \\
    write; \\
  }}
__attribute__((optimize("-ffp-contract=off")))
void {ADD}(char *target, const char *a, const char *b, double weight_a, double weight_b, int64_t count, int type) {{
  switch (type) {{
    case 0: OPSMITH_ADD(float, float, , ((float *)target)[i] = sum) break;
    case 1: OPSMITH_ADD(double, double, , ((double *)target)[i] = sum) break;
#ifdef __FLT16_MANT_DIG__
    case 2: OPSMITH_ADD(_Float16, float, (float), ((_Float16 *)target)[i] = (_Float16)sum) break;
#endif
    case 3: OPSMITH_ADD(uint16_t, float, opsmith_widen, uint32_t bits; memcpy(&bits, &sum, 4);
                        ((uint16_t *)target)[i] = (bits + 0x8000) >> 16) break;
  }}
}}
void {CHOOSE}(char *target, const char *a, const char *b, const char *choice, const char *bits, int64_t size) {{
  for (int64_t i = 0; i < size; i++) target[i] = a[i] ^ ((a[i] ^ b[i]) & choice[i]) ^ bits[i];
}}
void {REORDER}(char *target, const char *a, const char *b, const int32_t *order, const int32_t *steps,
               int64_t step_count, int64_t rows, int64_t columns, int64_t width, uint64_t seed) {{
  for (int64_t row = 0; row < rows; row++) {{
    uint64_t state = opsmith_scatter(opsmith_scatter(0, seed), row), which = opsmith_scatter(state, 2);
    uint64_t place = opsmith_scatter(state, 0) % columns, step = steps[opsmith_scatter(state, 1) % step_count];
    const char *source = (which & 1 ? b : a) + (which >> 1) % rows * columns * width;
    for (int64_t column = 0; column < columns; column++) {{
      memcpy(target, source + order[place] * width, width);
      target += width;
      place = (place + step) % columns;
    }}
  }}
}}
"""


def write_driver(signature: Signature) -> str:
    """Its source. `places`: where each array begins in a slot; `slots`: where each slot begins in memory."""
    arguments = ", ".join(_write_arguments(signature.arguments))
    return _DRIVER.format(name=TIME_CALLS, function=FUNCTION, arguments=arguments)


def _write_arguments(arguments: Sequence[Argument]) -> list[str]:
    arrays = [argument for argument in arguments if argument.c_type.endswith("restrict")]
    texts = [f"({array.c_type})(slot + places[{place}])" for place, array in enumerate(arrays)]
    members = ["real" if argument.c_type == "double" else "whole" for argument in arguments[len(arrays) :]]
    return [*texts, *(f"numbers[{place}].{member}" for place, member in enumerate(members))]
