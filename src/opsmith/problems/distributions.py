"""Distributions: kinds of data beside the one that a problem draws, for programs that are right on usual numbers alone.

What is reshaped are the random numbers that data is made from: an input that is `normal` may become any finite number,
one that is `uniform(a, b)`, `randint(a, b)` or an expression stays what its author's own numbers could have been, so
that indices, masks and offsets stay valid. An author may state an input's data under a distribution himself.

Whether a problem can be judged on such data is measured on each draw (`native.NativeDraw.explain_unfit`). Sums of what
is drawn here do not cancel, and constants have few digits: else the order of a right sum would show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.dtypes import NARROW_FLOATS
from opsmith.problems.precision import widen_floats
from opsmith.problems.problem import Distribution, Problem

STRENGTHS = (1.0, 0.75, 0.5, 0.25)  # tried in turn, until the reference is well conditioned
LARGEST_EXPONENT = (
    8.0  # powers of ten that numbers grow or shrink by: their squares and fourth powers are finite in fp32
)
LARGEST_SHIFT = 4.4  # ... that are added to a row
SHARE = 0.65  # of the tensors, that are reshaped together
BELOW_ONE = 1 - 2**-24


# which keep equal numbers equal and different ones different: what a problem may be tried on that does not say which
# of equal numbers counts
ORDERED = frozenset({Distribution.SCALED, Distribution.SORTED, Distribution.PERIODIC})
# where a sum of n terms in a narrow type loses more than sqrt(n) roundings
_ONE_SIGN = frozenset(Distribution) - {Distribution.SCALED, Distribution.SPARSE, Distribution.EXTREME}


@dataclass(frozen=True)
class Shaping:
    """A distribution with its strength, from 1 (far from what is usual) down. Variant 0 reshapes every tensor as far as
    the strength allows, others some of them, by what is drawn."""

    kind: Distribution
    variant: int = 0
    strength: float = 1.0
    place: int = 0  # of the tensor that is reshaped, among all of the problem

    def weaken(self, strength: float) -> Shaping:
        return replace(self, strength=strength)

    def choose_tensors(self, problem: Problem) -> dict[str, Shaping]:
        """How each of the inputs is reshaped that are, by torch's seeded generator."""
        is_whole = self.variant == 0 or self.kind is Distribution.SCALED
        own = {tensor.name: replace(self, place=place) for place, tensor in enumerate(problem.tensors)}
        return {name: shaping for name, shaping in own.items() if is_whole or _draw_number() < SHARE} or own

    def shape_normals(self, numbers: Tensor, dtype: torch.dtype) -> Tensor:
        """Normal numbers that `dtype` will hold, reshaped."""
        return _by_rows(numbers, lambda rows: _NORMALS[self.kind](self, rows, dtype))

    def shape_units(self, numbers: Tensor) -> Tensor:
        """Numbers of [0, 1), reshaped within it."""
        return _by_rows(numbers, lambda rows: _UNITS[self.kind](self, rows)).clamp(0.0, BELOW_ONE)

    def shape_integers(self, numbers: Tensor, low: int, high: int) -> Tensor:
        """Whole numbers from `low` to `high`, which is excluded, reshaped within them."""
        return _by_rows(numbers, lambda rows: _INTEGERS[self.kind](rows, low, high)).clamp(low, high - 1)

    def draw_amount(self) -> float:
        """How much of what the strength allows: all, or a part of it."""
        return self.strength * (1.0 if self.variant == 0 else 0.2 + 0.8 * _draw_number())


def list_usable(problem: Problem) -> dict[Distribution, str]:
    """Every distribution, and why it cannot be asked for at all; "": it can."""
    reason = ""
    if problem.drawn_from is not None:
        reason = "its data is computed from another problem's"
    narrow = "a sum in its narrow type loses too much of numbers of one sign"
    is_narrow = problem.accumulation in NARROW_FLOATS
    return {kind: reason or (narrow if is_narrow and kind in _ONE_SIGN else "") for kind in Distribution}


def has_equal_numbers(tensors: Mapping[str, Tensor]) -> bool:
    """Whether a float occurs twice along the last axis of some tensor."""
    floats = [widen_floats(tensor) for tensor in tensors.values() if tensor.is_floating_point() and tensor.dim() > 0]
    return any(bool((tensor.sort(-1).values.diff(dim=-1) == 0).any()) for tensor in floats)


class ShapedTorch:
    """The module `torch` as an expression of data sees it, with random numbers that are reshaped."""

    def __init__(self, shaping: Shaping, dtype: torch.dtype) -> None:
        self._shaping, self._dtype = shaping, dtype

    def __getattr__(self, name: str) -> Any:
        own = getattr(torch, name)
        if name in ("randn", "randn_like"):
            return lambda *args, **kwargs: self._shaping.shape_normals(own(*args, **kwargs), self._dtype)
        if name in ("rand", "rand_like"):
            return lambda *args, **kwargs: self._shaping.shape_units(own(*args, **kwargs))
        if name in ("randint", "randint_like"):
            return lambda *args, **kwargs: self._shape_call(own(*args, **kwargs), args, kwargs)
        return own

    def _shape_call(self, numbers: Tensor, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor:
        """Of randint, whose bounds are `high`, or `low` and `high`."""
        bounds = [value for value in args if isinstance(value, int)]
        high = kwargs.get("high", bounds[-1] if bounds else 0)
        low = kwargs.get("low", bounds[0] if len(bounds) > 1 or (bounds and "high" in kwargs) else 0)
        return self._shaping.shape_integers(numbers, int(low), int(high))


def _by_rows(numbers: Tensor, reshape: Callable[[Tensor], Tensor]) -> Tensor:
    """As a matrix of rows along the last axis, and back; nothing where there are no numbers."""
    if not numbers.numel():
        return numbers
    rows = numbers.reshape(-1, numbers.shape[-1] if numbers.dim() else 1)
    return reshape(rows).to(numbers.dtype).reshape(numbers.shape)


def _draw_number() -> float:
    return float(torch.rand(()))


def _draw_whole(high: int) -> int:
    """From 0 to below `high`."""
    return int(torch.randint(0, high, ()))


def _draw_signs(rows: Tensor) -> Tensor:
    """1 or -1 for every row."""
    return torch.randint(0, 2, (rows.shape[0], 1)) * 2.0 - 1


def _alternate_signs(count: int) -> Tensor:
    """1 and -1 for rows by turns: where there are several, both occur."""
    return (1.0 - 2 * ((torch.arange(count) + _draw_whole(2)) % 2)).unsqueeze(1)


def _draw_mask(rows: Tensor, share: float) -> Tensor:
    return torch.rand(rows.shape) < share


def _find_exponent(dtype: torch.dtype, is_up: bool) -> float:
    """The power of ten by which normal numbers may grow or shrink and stay usual numbers of a type: subnormal ones may
    count as zero on a GPU."""
    limits = torch.finfo(dtype)
    own = math.log10(limits.max) - 0.9 if is_up else -math.log10(limits.tiny) - 2
    return max(0.0, min(LARGEST_EXPONENT, own))


def _power(exponent: float) -> float:
    """A power of two near a power of ten: no digit changes."""
    return 2.0 ** round(exponent * math.log2(10))


def _order_by_remainder(shaping: Shaping, rows: Tensor) -> Tensor:
    """The numbers of every row, the largest where the place leaves the largest remainder by a power of two."""
    period = (8, 16, 4, 32, 2)[shaping.variant % 5] if rows.shape[1] > 8 else 2
    places = torch.arange(rows.shape[1])
    order = torch.argsort(places % period * rows.shape[1] + places // period)
    ordered = torch.empty_like(rows)
    ordered[:, order] = rows.sort(-1).values
    return ordered


# -- normal numbers


def _scale(shaping: Shaping, rows: Tensor, dtype: torch.dtype) -> Tensor:
    """All tensors up, all down, by turns, by turns the other way, or each as it is drawn."""
    turn = shaping.place % 2 == 0
    is_up = (True, False, turn, not turn, _draw_number() < 0.5)[shaping.variant % 5]
    amount = (
        shaping.draw_amount() if shaping.variant % 5 == 4 else shaping.strength
    )  # products stay as they are by turns
    exponent = _find_exponent(dtype, is_up) * amount
    return rows * _power(exponent if is_up else -exponent)


def _shift(shaping: Shaping, rows: Tensor, dtype: torch.dtype) -> Tensor:
    reach = 10 ** (min(LARGEST_SHIFT, _find_exponent(dtype, True)) * shaping.draw_amount())
    return rows + reach * (0.2 + 0.8 * torch.rand(rows.shape[0], 1)) * _alternate_signs(rows.shape[0])


def _make_negative(shaping: Shaping, rows: Tensor, dtype: torch.dtype) -> Tensor:
    scale = _power(max(0.0, _find_exponent(dtype, True) - 0.5) * shaping.draw_amount())
    return -(rows.abs() + (1.0 if shaping.variant % 2 == 0 else 0.0)) * scale


def _make_constant(shaping: Shaping, rows: Tensor, dtype: torch.dtype) -> Tensor:
    """Of four bits: every sum of a few thousand of them is exact."""
    count = 1 if shaping.variant % 2 else rows.shape[0]
    values: Tensor = torch.randint(0, 16, (count, 1)) * _alternate_signs(count)
    exponents = torch.randint(-3, 4, (count, 1)) - round(4 * (1 - shaping.strength))
    return (values * 2.0**exponents).expand(rows.shape).clone()


def _make_sparse(shaping: Shaping, rows: Tensor, dtype: torch.dtype) -> Tensor:
    """Rows of both signs, or of none above 0; some without a number, some that begin with zeros."""
    signed = torch.where(_draw_signs(rows) > 0, rows, -rows.abs())
    keeps = _draw_mask(rows, 0.25 * _draw_number() + 0.02) & (torch.rand(rows.shape[0], 1) < 0.9)
    keeps[:, : rows.shape[1] // 4] &= torch.rand(rows.shape[0], 1) < 0.3
    zeros = torch.where(_draw_mask(rows, 0.5), 0.0, -0.0)
    return torch.where(keeps, signed, zeros)


def _sort(shaping: Shaping, rows: Tensor, dtype: torch.dtype) -> Tensor:
    scale = _power(min(3.0, _find_exponent(dtype, True)) * shaping.draw_amount())
    return rows.abs().sort(-1, descending=_draw_number() < 0.5).values * _draw_signs(rows) * scale


def _make_periodic(shaping: Shaping, rows: Tensor, dtype: torch.dtype) -> Tensor:
    return _order_by_remainder(shaping, rows.abs()) * (1.0 if shaping.variant % 2 == 0 else _draw_signs(rows))


def _add_extremes(shaping: Shaping, rows: Tensor, dtype: torch.dtype) -> Tensor:
    scale = _power(_find_exponent(dtype, True) * shaping.draw_amount())
    return torch.where(_draw_mask(rows, max(0.01, 1.5 / rows.numel())), rows * scale, rows)


def _make_few(shaping: Shaping, rows: Tensor, dtype: torch.dtype) -> Tensor:
    return (rows * 2).round()


_NORMALS: Mapping[Distribution, Callable[[Shaping, Tensor, torch.dtype], Tensor]] = {
    Distribution.SCALED: _scale,
    Distribution.SHIFTED: _shift,
    Distribution.NEGATIVE: _make_negative,
    Distribution.CONSTANT: _make_constant,
    Distribution.SPARSE: _make_sparse,
    Distribution.SORTED: _sort,
    Distribution.PERIODIC: _make_periodic,
    Distribution.EXTREME: _add_extremes,
    Distribution.FEW: _make_few,
}


# -- numbers of [0, 1)


def _shrink_units(shaping: Shaping, rows: Tensor) -> Tensor:
    factor = 2.0 ** -round(20 * shaping.draw_amount())
    return rows * factor if shaping.variant % 2 == 0 else 1 - (1 - rows) * factor


def _narrow_units(shaping: Shaping, rows: Tensor) -> Tensor:
    return 0.95 * torch.rand(rows.shape[0], 1) + 0.05 * rows


def _sort_units(shaping: Shaping, rows: Tensor) -> Tensor:
    return rows.sort(-1, descending=_draw_number() < 0.5).values


def _make_constant_units(shaping: Shaping, rows: Tensor) -> Tensor:
    count = 1 if shaping.variant % 2 else rows.shape[0]
    return (torch.randint(0, 16, (count, 1)) / 16).expand(rows.shape).clone()


_UNITS: Mapping[Distribution, Callable[[Shaping, Tensor], Tensor]] = {
    Distribution.SCALED: _shrink_units,
    Distribution.SHIFTED: _narrow_units,
    Distribution.NEGATIVE: lambda shaping, rows: rows / 4,
    Distribution.CONSTANT: _make_constant_units,
    Distribution.SPARSE: lambda shaping, rows: torch.where(_draw_mask(rows, 0.1), rows, 0.0),
    Distribution.SORTED: _sort_units,
    Distribution.PERIODIC: _order_by_remainder,
    Distribution.EXTREME: lambda shaping, rows: torch.where(_draw_mask(rows, 0.5), 0.0, BELOW_ONE),
    Distribution.FEW: lambda shaping, rows: (rows * 4).floor() / 4,
}


# -- whole numbers


def _make_runs(rows: Tensor, low: int, high: int) -> Tensor:
    """Rising, or runs of neighbours that begin anywhere."""
    if _draw_number() < 0.5:
        return rows.sort(-1).values
    length = 4 + _draw_whole(12)
    places = torch.arange(rows.shape[1])
    shifted: Tensor = rows[:, places // length * length] - low + places % length
    return low + shifted % (high - low)


def _repeat_cycle(rows: Tensor, low: int, high: int) -> Tensor:
    cycle = min(2 << _draw_whole(5), high - low)
    places = torch.arange(rows.shape[1]) % cycle
    return low + _draw_whole(high - low - cycle + 1) + places.expand(rows.shape)


_INTEGERS: Mapping[Distribution, Callable[[Tensor, int, int], Tensor]] = {
    Distribution.SCALED: lambda rows, low, high: rows,
    Distribution.SHIFTED: lambda rows, low, high: low + (rows - low) // 8 + _draw_whole(high - low),
    Distribution.NEGATIVE: lambda rows, low, high: low + (rows - low) // 4,
    Distribution.CONSTANT: lambda rows, low, high: rows.flatten()[0].expand(rows.shape).clone(),
    Distribution.SPARSE: lambda rows, low, high: torch.where(
        _draw_mask(rows, 0.1) & (torch.arange(rows.shape[1]) >= rows.shape[1] // 4), rows, 0 if low <= 0 < high else low
    ),
    Distribution.SORTED: _make_runs,
    Distribution.PERIODIC: _repeat_cycle,
    Distribution.EXTREME: lambda rows, low, high: torch.where(_draw_mask(rows, 0.5), low, high - 1),
    Distribution.FEW: lambda rows, low, high: rows.flatten()[torch.randint(0, min(3, rows.numel()), rows.shape)],
}
