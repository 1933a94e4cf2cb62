"""The size of each symbol of a problem, given the shapes of its inputs.

One rule a symbol, planned from the problem alone: the axis that determines it once the symbols before it are known. A
symbol that no shape determines (the length of an output, M of a single axis M*N) is free: a caller gives it, and it is
the problem's own size otherwise. The arithmetic is that of whole numbers, symbolic ones of `torch.compile` included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsmith.problems.dims import Dim
from opsmith.problems.problem import Problem
from opsmith.targets.native.signature import list_dims


@dataclass(frozen=True)
class SizeRule:
    """How the size of a symbol follows from the length of one axis."""

    symbol: str
    tensor: str
    axis: int
    dim: Dim

    def solve(self, length: int, sizes: Mapping[str, int]) -> int | None:
        """The size, given those of the other symbols; None: it is not whole."""
        top, bottom, power = length * self.dim.coefficient.denominator, self.dim.coefficient.numerator, 1
        for name, exponent in self.dim.powers:
            if name == self.symbol:
                power = exponent
            elif exponent > 0:
                bottom = bottom * sizes[name] ** exponent
            else:
                top = top * sizes[name] ** -exponent
        top, bottom = (top, bottom) if power > 0 else (bottom, top)
        return None if bottom < 1 or top % bottom != 0 else _take_root(top // bottom, abs(power))


def _take_root(value: int, degree: int) -> int | None:
    """The whole number whose power this is."""
    if degree == 1:
        return value
    root = round(int(value) ** (1 / degree))
    return root if root >= 1 and root**degree == value else None


@dataclass(frozen=True)
class SizePlan:
    """Where every size of a call comes from."""

    rules: Sequence[SizeRule]  # in the order in which they can be solved
    free: Sequence[str]  # the symbols that a caller gives


def plan_sizes(problem: Problem) -> SizePlan:
    """A plan for the symbols of all inputs, and for those that a program is called with.

    Axes that are a symbol come first. Of several unknown symbols of one axis the first by name is free.
    """
    axes = [(dim, tensor.name, axis) for tensor in problem.tensors for axis, dim in enumerate(tensor.type.shape)]
    axes.sort(key=lambda entry: (len(entry[0].powers), entry[0].coefficient != 1, _measure_degree(entry[0])))
    rules: list[SizeRule] = []
    free: list[str] = []
    determined: set[str] = set()
    while pending := [(entry, entry[0].symbols - determined) for entry in axes if entry[0].symbols - determined]:
        (dim, tensor, axis), unknown = min(pending, key=lambda pair: len(pair[1]))
        symbol = min(unknown)
        if len(unknown) == 1:
            rules.append(SizeRule(symbol, tensor, axis, dim))
        else:
            free.append(symbol)
        determined.add(symbol)
    named = {*list_dims(problem), *(name for dim in problem.dims for name in dim.symbols)}
    return SizePlan(rules, sorted({*free, *(named - determined)}))


def _measure_degree(dim: Dim) -> int:
    return math.prod(abs(power) + (power < 0) for _, power in dim.powers)
