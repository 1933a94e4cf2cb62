"""Tolerance: how far a right program's result may lie from the expected value.

Exact fields (decisions, integers) have no tolerance; their undecided entries (`decisions`) are not compared. An
output's own `rtol` and `atol` prevail. Otherwise:

    float64    |x - y| <= 1e-8 |y| + 1e-10 max|y| + 1e-12. Float64 rounds at 1e-16, so that a sum of a million terms in
               any order, and cancellation of four digits on top, still pass; a missing eps of 1e-5 in a root fails by
               orders of magnitude. Where authors' code computes with less (`narrowing`), the limit is the declared one.
    declared   |x - y| <= FACTOR times the largest of: the distance between the reference in the declared precision and
               in float64; how far the float64 reference moves when every input moves by one rounding error (which knows
               the size of the terms where a sum cancels); 2 ulps of the largest expected value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opsmith.problems.faults import TaskFault, make_fault
from opsmith.problems.precision import widen_floats
from opsmith.problems.problem import OutputTensors

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]  # what a verdict compares; limits themselves need torch alone

WIDE_RTOL, WIDE_SCALE, WIDE_FLOOR = 1e-8, 1e-10, 1e-12
FACTOR = 32
WIDEST = 0.01  # of the largest expected value may a tolerance be ...
ROUNDINGS = 128  # ... or this many roundings of the result's type, for types that round coarsely


@dataclass(frozen=True)
class Limit:
    """The expected values of one field and the distance that is allowed."""

    expected: Tensor  # floats as float64, unless compared exactly
    allowed: Tensor | None  # per entry, or one number for all; None: exact
    dtype: torch.dtype  # that a result must have
    undecided: Tensor | None = None  # which entries are not judged, where it is exact; None: all are

    @cached_property
    def expected_array(self) -> Array:
        return array_of(self.expected)

    @cached_property
    def allowed_array(self) -> Array | None:
        return None if self.allowed is None else array_of(self.allowed)

    def of_draw(self, number: int) -> Limit:
        """That of one draw, out of a stacked one."""
        allowed = None if self.allowed is None else self.allowed[number]
        undecided = None if self.undecided is None else self.undecided[number]
        return Limit(self.expected[number], allowed, self.dtype, undecided)


def describe_difference(result: Tensor, limit: Limit) -> str | None:
    """How a result differs from what is expected by more than is allowed, in one line. NaN always does."""
    if result.shape != limit.expected.shape or result.dtype is not limit.dtype:
        expectation = f"shape {tuple(limit.expected.shape)} and {limit.dtype}"
        return f"given shape {tuple(result.shape)} and {result.dtype}; expected {expectation}"
    gap = (result.double() - limit.expected.double()).abs()
    equal = widen_floats(result) == widen_floats(limit.expected)
    right = equal if limit.allowed is None else equal | (gap <= limit.allowed)
    right = right if limit.undecided is None else right | limit.undecided
    if right.all():
        return None
    return f"{int((~right).sum())} of {right.numel()} entries differ, the worst by {float(gap[~right].max()):.3g}"


def array_of(tensor: Tensor) -> Array:
    """The numbers in float64. NumPy's calls cost a third of torch's where tensors are small, as most are here."""
    array: Array = tensor.double().numpy()
    return array


def make_wide_limit(output: OutputTensors, value: Tensor, exact: bool) -> Limit:
    """The limit of a float64 trial."""
    expected = widen_floats(value)
    own = read_own_tolerance(output, expected)
    if own is not None or exact:
        return Limit(expected, own, expected.dtype)
    allowed = _take_magnitudes(expected) * WIDE_RTOL + (WIDE_SCALE * find_largest(expected) + WIDE_FLOOR)
    return Limit(expected, allowed, torch.float64)


def make_narrowed_limit(wide: Limit, declared: Limit) -> Limit:
    """The limit of a float64 trial where authors' code computes with less: what the declared precision allows."""
    if wide.allowed is None or declared.allowed is None:
        return wide
    return replace(wide, allowed=torch.maximum(wide.allowed, declared.allowed))


def make_declared_limit(output: OutputTensors, value: Tensor, rounded: Tensor, moved: Tensor, exact: bool) -> Limit:
    """The limit of a trial in the declared precision.

    `value` is the reference in float64, `rounded` in the declared precision, `moved` in float64 on jittered inputs.
    """
    expected = widen_floats(value)
    own = read_own_tolerance(output, expected)
    if own is None and exact:
        return Limit(value.to(rounded.dtype), None, rounded.dtype, mark_undecided(value, rounded))
    if own is not None:
        return Limit(expected, own, rounded.dtype)
    if not torch.equal(torch.isfinite(rounded), torch.isfinite(expected)):
        raise blame_overflow(output, rounded)
    ulps = 2 * torch.finfo(rounded.dtype).eps * find_largest(expected)
    allowed = FACTOR * max(measure_distance(rounded, expected), measure_distance(moved, expected), ulps)
    return Limit(expected, torch.tensor(allowed, dtype=torch.float64), rounded.dtype)


def mark_undecided(value: Tensor, rounded: Tensor) -> Tensor | None:
    """Which entries of a discrete output the reference gives otherwise where it rounds; None: no entry."""
    differing = value != rounded
    return differing if bool(differing.any()) else None


def stack_limits(limits: Sequence[Limit]) -> Limit:
    """The limits of several draws as one, with the draws as first axis; of a single draw as views."""
    expected = _stack_tensors([limit.expected for limit in limits])
    allowed = [limit.allowed.expand(limit.expected.shape) for limit in limits if limit.allowed is not None]
    undecided = None
    if any(limit.undecided is not None for limit in limits):
        none = torch.zeros_like(limits[0].expected, dtype=torch.bool)
        undecided = _stack_tensors([none if limit.undecided is None else limit.undecided for limit in limits])
    return Limit(expected, _stack_tensors(allowed) if allowed else None, limits[0].dtype, undecided)


def _stack_tensors(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0].unsqueeze(0) if len(tensors) == 1 else torch.stack(list(tensors))


def read_own_tolerance(output: OutputTensors, expected: Tensor) -> Tensor | None:
    """The distance that the file itself allows, per entry; None: it says nothing."""
    if output.rtol is None and output.atol is None:
        return None
    return _take_magnitudes(expected) * (output.rtol or 0.0) + (output.atol or 0.0)


def _take_magnitudes(expected: Tensor) -> Tensor:
    """Absolute values; infinity has no neighbours and counts as 0."""
    return torch.where(torch.isfinite(expected), expected.abs(), 0.0)


def measure_distance(x: Tensor, y: Tensor) -> float:
    """The largest finite distance."""
    gap = (widen_floats(x) - y).abs()
    finite = gap[torch.isfinite(gap)]
    return float(finite.max()) if finite.numel() else 0.0


def find_largest(expected: Tensor) -> float:
    """The largest finite magnitude."""
    finite = expected[torch.isfinite(expected)]
    return float(finite.abs().max()) if finite.numel() else 0.0


def blame_overflow(output: OutputTensors, rounded: Tensor) -> TaskFault:
    """The finding on a reference that leaves the range of a declared type."""
    where = f"outputs, {output.name}, data_transform" if output.references else f"reference, {output.name}"
    expected = "a reference within the declared range"
    if rounded.element_size() == 1:
        limits = torch.finfo(rounded.dtype)
        mistake, remedy = f"values beyond {rounded.dtype}", f".clamp({limits.min:g}, {limits.max:g})"
        return make_fault("TASK", where, mistake, expected, remedy)
    return make_fault("TASK", where, f"infinite values in {rounded.dtype} where float64 has none", expected)
