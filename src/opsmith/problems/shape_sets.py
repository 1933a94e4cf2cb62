"""The built-in shape sets by name, which of them concern a problem, and messages that say what a name stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping

from opsmith.problems.dims import DimError
from opsmith.problems.problem import Problem

SHAPE_SETS: Mapping[str, Mapping[str, int]] = {
    "base": {},  # the sizes of the task file
    "unit": {"M": 1, "N": 1, "K": 1, "D": 2},  # everything minimal
    "M1": {"M": 1},
    "N1": {"N": 1},
    "K1": {"K": 1},
    "D2": {"D": 2},
    "coprime": {"M": 13, "N": 11, "K": 17, "D": 6},  # M > N, K > D
    "wide": {"M": 3, "N": 19, "K": 4, "D": 10},
    "tall": {"M": 19, "N": 3, "K": 10, "D": 4},
    "equal": {"M": 4, "N": 4, "K": 4, "D": 4},  # symbols must be told apart by name
    "tight": {"M": 3, "N": 1, "K": 2, "D": 2},
    "large": {"M": 32, "N": 64, "K": 64, "D": 64},  # tolerance and speed
}


def choose_shape_sets(problem: Problem) -> dict[str, dict[str, int]]:
    """The sets that differ for this problem: name -> sizes that differ from the problem's own, in the order of trial:
    large last.

    A set of the task file replaces the built-in one of that name; what a set does not name keeps its base size.
    Built-in sets at which a dim of the problem has no whole value are left out; a problem with a `reference` has its
    own alone.
    """
    base = problem.base_sizes
    own = {"base": {}, **problem.shapes}
    chosen: dict[str, dict[str, int]] = {}
    for name, stated in sorted(
        (own if problem.reference else {**SHAPE_SETS, **own}).items(), key=lambda pair: pair[0] == "large"
    ):
        sizes = {key: size for key, size in stated.items() if key in problem.symbols and size != base.get(key)}
        if name not in problem.shapes and not has_whole_dims(problem, {**base, **sizes}):
            continue
        has_cases = any(case.shape == name for case in problem.cases)
        if name == "base" or has_cases or (sizes not in chosen.values() and sizes):
            chosen[name] = sizes
    return chosen


def has_whole_dims(problem: Problem, sizes: Mapping[str, int]) -> bool:
    """Whether every dim that the problem declares has a whole value."""
    try:
        for dim in problem.dims:
            dim.value(sizes)
    except DimError:
        return False
    return True


def explain_shape_sets(problem: Problem, message: str) -> str:
    """A message with the sizes behind each shape set in the name of a trial; what a set leaves out is the base's.

    >>> from opsmith.problems.dims import parse_dim
    >>> from opsmith.problems.problem import ArrayType, OutputTensors
    >>> output = OutputTensors("S0", (ArrayType("fp32", (parse_dim("N"), parse_dim("D"))),), ())
    >>> explain_shape_sets(Problem((), (), (output,)), "D2 seed 0 float64, base seed 0 float64")
    'D2 (D = 2) seed 0 float64, base (N = 7, D = 16) seed 0 float64'
    >>> explain_shape_sets(Problem((), (), (output,)), "RUN\\n  where:    D2, kernel add")
    'RUN\\n  where:    D2 (D = 2), kernel add'
    """
    sets = {**SHAPE_SETS, **problem.shapes}
    names = "|".join(re.escape(name) for name in sorted(sets, key=len, reverse=True))
    seeded = rf"(?<![\w-])(?:{names})(?= (?:seed \d|float64|declared precision))"
    return re.sub(  # where it fails as it runs there is no seed
        rf"{seeded}|(?m:(?<=^  where:    )(?:{names})(?=,|$))",
        lambda match: match[0] + _write_sizes(problem, sets[match[0]] or problem.base_sizes),
        message,
    )


def _write_sizes(problem: Problem, sizes: Mapping[str, int]) -> str:
    """The sizes of the problem's symbols in brackets; "" where it has none."""
    rows = ", ".join(f"{name} = {size}" for name, size in problem.select_sizes(sizes).items())
    return f" ({rows})" if rows else ""
