"""The schema of an operator: its arguments and results as `torch.library` declares them.

Arguments stand in the order of a call: inputs, parameters, scalars, sizes that no shape determines. torch takes fewer
names than Python does; the function that a user calls has the problem's own.
"""

from __future__ import annotations

import math
import re

from opsmith.problems.problem import Problem
from opsmith.targets.native.library.sizes import SizePlan

_RESERVED = frozenset(  # words of schemas, and of the Python that torch makes of them
    {"Tensor", "int", "float", "bool", "str", "None", "True", "False", "Scalar", "ScalarType", "SymInt", "Device"}
    | {"Layout", "Generator", "Storage", "Stream", "Any", "Dimname", "MemoryFormat", "QScheme", "Future", "RRef"}
    | {"Optional", "List", "Dict", "Tuple", "Union", "self", "out"}
)


def write_schema(problem: Problem, plan: SizePlan) -> str:
    """`(Tensor x, float eps=1e-05) -> Tensor`."""
    names: set[str] = set()
    arguments = [f"Tensor {_choose_name(tensor.name, names)}" for tensor in problem.tensors]
    for name, value in problem.scalars.items():
        kind = "int" if isinstance(value, int) else "float"
        arguments.append(f"{kind} {_choose_name(name, names)}{_write_default(value)}")
    arguments += [f"SymInt {_choose_name(name, names)}={problem.base_sizes[name]}" for name in plan.free]
    results = ["Tensor" for output in problem.outputs for _ in output.types]
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"({', '.join(arguments)}) -> {result}"


def _write_default(value: float) -> str:
    """Nothing for infinity, which a schema has no word for: all that follow then have to be given."""
    return f"={value!r}" if math.isfinite(value) else ""


def _choose_name(name: str, names: set[str]) -> str:
    chosen = re.sub(r"\W", "_", name, flags=re.ASCII)
    chosen = f"x{chosen}" if re.match(r"[\d_]", chosen) else chosen
    while chosen in names or chosen in _RESERVED:
        chosen += "_"
    names.add(chosen)
    return chosen
