"""A bound plan at the sizes of a draw: whole numbers in place of expressions, within what a device takes.

No torch, no numpy: candidates' processes import this.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.records import Diagnostic
from opsmith.targets.gpu.expressions import ExpressionError, evaluate
from opsmith.targets.gpu.plan import WHOLE, BoundLaunch, BoundPlan, ResolvedLaunch, ResolvedPlan, Triple, Workspace


@dataclass(frozen=True)
class DeviceLimits:
    """The most that a launch may ask for."""

    threads: int = 1024  # of a block
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    shared: int = 227 << 10  # bytes of a block, dynamic
    workspaces: int = 1 << 28  # bytes of all workspaces together


LIMITS = DeviceLimits()


class PlanFault(Exception):
    """A plan that cannot be launched at the sizes of a draw."""

    def __init__(self, line: int, where: str, actual: str, expected: str, remedy: str = "") -> None:
        tail = f"; try: {remedy}" if remedy else ""
        super().__init__(f"line {line}: {where}: given {actual}; expected {expected}{tail}")
        self.line, self.where, self.given, self.expected, self.remedy = line, where, actual, expected, remedy

    def make_finding(self, kind: str) -> Diagnostic:
        return Diagnostic(kind, self.where, self.given, self.expected, self.remedy, self.line)


def resolve_plan(plan: BoundPlan, numbers: Sequence[float], limits: DeviceLimits = LIMITS) -> ResolvedPlan:
    """The plan for `DrawLayout.numbers`. Raises PlanFault."""
    pairs = zip(plan.numbers, numbers, strict=True)
    sizes = {name: int(number) for (name, type_), number in pairs if type_ == WHOLE}
    workspaces = tuple(_count_bytes(space, sizes) for space in plan.workspaces)
    if sum(workspaces) > limits.workspaces:
        actual = f"workspaces of {sum(workspaces)} bytes{_describe_sizes(sizes)}"
        raise PlanFault(plan.workspaces[0].line, "workspaces", actual, f"at most {limits.workspaces}")
    return ResolvedPlan(workspaces, tuple(_resolve_launch(launch, sizes, limits) for launch in plan.launches))


def _count_bytes(space: Workspace, sizes: Mapping[str, int]) -> int:
    where = f"workspace {space.name}"
    shape = [_compute(space.line, where, text, sizes) for text in space.shape]
    for text, size in zip(space.shape, shape, strict=True):
        if size < 1:
            raise PlanFault(space.line, where, f"`{text}` = {size}{_describe_sizes(sizes)}", "1 or more")
    return math.prod(shape) * BYTES_BY_DTYPE[space.dtype]


def _resolve_launch(launch: BoundLaunch, sizes: Mapping[str, int], limits: DeviceLimits) -> ResolvedLaunch:
    where = f"launch {launch.kernel}"
    meta = {name: _compute(launch.line, f"{where}, meta {name}", text, sizes) for name, text in launch.meta}
    sizes = {**sizes, **meta}
    grid = _resolve_triple(launch, "grid", launch.grid, limits.grid, sizes)
    block = _resolve_triple(launch, "block", launch.block, limits.block, sizes)
    if math.prod(block) > limits.threads:
        actual = f"a block of {' x '.join(map(str, block))} = {math.prod(block)} threads{_describe_sizes(sizes)}"
        remedy = "let threads loop over entries, or use more blocks"
        raise PlanFault(launch.line, where, actual, f"at most {limits.threads}", remedy)
    shared = _compute(launch.line, f"{where}, shared", launch.shared, sizes)
    if not 0 <= shared <= limits.shared:
        actual = f"{shared} bytes of shared memory{_describe_sizes(sizes)}"
        remedy = "work on tiles of a size that does not grow with the dims" if shared > 0 else ""
        raise PlanFault(launch.line, where, actual, f"0 to {limits.shared}", remedy)
    return ResolvedLaunch(launch.kernel, grid, block, shared, launch.arguments, launch.line, tuple(meta.items()))


def _resolve_triple(
    launch: BoundLaunch, key: str, texts: Triple, limits: tuple[int, int, int], sizes: Mapping[str, int]
) -> tuple[int, int, int]:
    where = f"launch {launch.kernel}, {key}"
    values = [_compute(launch.line, where, text, sizes) for text in texts]
    for axis, text, value, limit in zip("xyz", texts, values, limits, strict=True):
        if not 1 <= value <= limit:
            formula = "" if text.isdigit() else f"`{text}` = "
            actual = f"{key}.{axis} = {formula}{value}{_describe_sizes(sizes) if formula else ''}"
            remedy = f"max({text}, 1), or cdiv in place of //" if value == 0 else ""
            raise PlanFault(launch.line, where, actual, f"1 to {limit}", remedy)
    first, second, third = values
    return first, second, third


def _compute(line: int, where: str, text: str, sizes: Mapping[str, int]) -> int:
    try:
        return evaluate(text, sizes)
    except ExpressionError as error:
        actual = f"{error.given}{_describe_sizes(sizes)}"
        raise PlanFault(line, where, actual, error.expected, error.remedy) from error


def _describe_sizes(sizes: Mapping[str, int]) -> str:
    words = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    return f" at {words}" if words else ""
