"""An operator with several programs: a unit of C that calls the one whose measured sizes are nearest to the call's.

How far sizes are apart: the sum over dims of the squared logarithm of their ratio; of equally far ones the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opsmith.problems.problem import Problem
from opsmith.targets.native.signature import list_dims, make_signature

_CHOOSE = """\
/* Calls the program that was the fastest at the nearest of the sizes that were measured. Made by `opsmith export`. */
#include <math.h>

static int {prefix}_choose(const int64_t *sizes) {{
  static const double measured[{sets}][{dims}] = {{{rows}}};
  static const int programs[{sets}] = {{{programs}}};
  int nearest = 0;
  double least = INFINITY;
  for (int set = 0; set < {sets}; set++) {{
    double distance = 0.0;
    for (int dim = 0; dim < {dims}; dim++) {{
      const double step = log((double)sizes[dim] / measured[set][dim]);
      distance += step * step;
    }}
    if (distance < least) {{
      least = distance;
      nearest = set;
    }}
  }}
  return programs[nearest];
}}
"""


def write_choosing_unit(
    symbols: Sequence[str], problem: Problem, sizes: Sequence[Mapping[str, Mapping[str, int]]]
) -> str:
    """The unit that is the operator: `symbols` of its programs, and the measured `sizes` of each by shape set."""
    signature, dims = make_signature(problem), list_dims(problem)
    names = [argument.name for argument in signature.arguments]
    prefix = "opsmith"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    measured = [(number, place) for number, places in enumerate(sizes) for place in places.values()]
    choosing = _CHOOSE.format(
        prefix=prefix,
        sets=len(measured),
        dims=len(dims),
        rows=", ".join(f"{{{', '.join(f'{place[dim]}.0' for dim in dims)}}}" for _, place in measured),
        programs=", ".join(str(number) for number, _ in measured),
    )
    declared = ", ".join(argument.declaration for argument in signature.arguments)
    externs = [
        f'extern void {prefix}_{number}({declared}) __asm__("{symbol}");\n' for number, symbol in enumerate(symbols)
    ]
    first = len(names) - len(problem.scalars) - len(dims)
    cases = [f"    case {number}: {prefix}_{number}({', '.join(names)}); return;\n" for number in range(len(symbols))]
    body = f"  const int64_t {prefix}_sizes[] = {{{', '.join(names[first : first + len(dims)])}}};\n"
    body += f"  switch ({prefix}_choose({prefix}_sizes)) {{\n{''.join(cases)}  }}\n"
    return f"{choosing}\n{''.join(externs)}\nvoid kernel({declared}) {{\n{body}}}\n"
