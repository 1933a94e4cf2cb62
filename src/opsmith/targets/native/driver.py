"""The loop that calls a program while it is timed: a C file of ours, built for the signature of a problem.

It is a library of its own, without the program's flags: the program and its partner are called by the same machine
code, through a pointer, and the clock is read twice a turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.targets.native.calls import DISTURB, TIME_CALLS
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

MIXER_SOURCE = f"""void {DISTURB}(char *target, const char *source, const char *noise, int start, int64_t size) {{
  for (int64_t i = 0; i < size; i++) target[i] = source[i] ^ noise[start + i];
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
