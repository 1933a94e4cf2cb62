"""The work of a problem at a shape set: floating-point operations of its reference, and bytes that must be moved.

The operations are counted while the reference runs on data of that size, so that what depends on data (the length of
a bag) is counted as it is; this runs authors' code and belongs in a worker. They are those of the text: a reference
that does more than it must has more of them. The bytes are every input read once and every output written once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch._ops import OpOverload

from opsmith.measuring.operations import count_operations
from opsmith.measuring.roofline import ProblemWork
from opsmith.problems.dispatch import UncompiledMode
from opsmith.problems.drawing import draw_data
from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.problems.problem import Problem
from opsmith.problems.reference import run_unchecked


def count_work(problem: Problem, sizes: Mapping[str, int], seed: int = 0) -> ProblemWork:
    """The work at these sizes, on the data of one seed. Raises TaskFault where the author's code fails."""
    bindings = draw_data(problem, sizes, seed)
    with _OperationCounter() as counter:
        run_unchecked(problem, bindings)
    bytes_moved = count_bytes(problem, bindings.sizes)
    if counter.unknown:
        return ProblemWork(None, bytes_moved, f"not known how much work torch's {sorted(counter.unknown)[0]} is")
    return ProblemWork(counter.operations, bytes_moved)


def count_bytes(problem: Problem, sizes: Mapping[str, int]) -> int:
    """Of all inputs and outputs, each once. Raises DimError where a dim has no whole value."""
    return sum(BYTES_BY_DTYPE[type_.dtype] * math.prod(type_.shape_at(sizes)) for type_ in problem.types)


class _OperationCounter(UncompiledMode):
    """Counts what torch executes in the block."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # of torch
        self.operations = 0
        self.unknown: set[str] = set()

    def __torch_dispatch__(
        self, func: OpOverload[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        count = count_operations(func, args, result)
        if count is None:
            self.unknown.add(str(func))
        else:
            self.operations += count
        return result
