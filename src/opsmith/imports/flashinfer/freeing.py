"""Constant axes of a definition whose tensors are too large: they vary in the problem, so that it can be judged at all.

A program then computes the definition at its constants too, since it does so at any size. What the reference asserts of
these constants is left out; where it needs them otherwise, it fails when it is tried, and the definition is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from opsmith.imports.flashinfer.dataset import list_constants
from opsmith.imports.flashinfer.formats import Definition, VarAxis, Workload

SMALLEST_FREED = 256  # a constant below is none that tensors are large by


def choose_freed(definition: Definition, most_numbers: int) -> dict[str, int]:
    """The constant axes to be freed, the largest first, until the numbers of all tensors fit where every axis that
    varies is 1; none where they fit already."""
    constants = dict(list_constants(definition))
    freed: dict[str, int] = {}
    for name in sorted(constants, key=lambda name: (-constants[name], name)):
        if _count_least(definition, freed) <= most_numbers or constants[name] < SMALLEST_FREED:
            break
        freed[name] = constants[name]
    return freed


def _count_least(definition: Definition, freed: dict[str, int]) -> int:
    constants = {name: size for name, size in list_constants(definition).items() if name not in freed}
    specs = [*definition.inputs.values(), *definition.outputs.values()]
    return sum(math.prod(constants.get(axis, 1) for axis in spec.shape or ()) for spec in specs)


def free_axes(definition: Definition, freed: dict[str, int]) -> Definition:
    """The definition with these axes varying."""
    axes = {name: VarAxis(type="var") if name in freed else axis for name, axis in definition.axes.items()}
    return definition.model_copy(update={"axes": axes})


def free_workloads(workloads: Sequence[Workload], freed: dict[str, int]) -> tuple[Workload, ...]:
    """The workloads with the sizes that these axes had."""
    return tuple(row.model_copy(update={"axes": {**row.axes, **freed}}) for row in workloads)
