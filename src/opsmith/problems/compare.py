"""Comparison: whether outputs are the expected ones and, if not, what would help the next attempt.

Everything is compared: the number of outputs, each tensor's shape and dtype, each entry. How far an entry may lie from
the expected one is `tolerance`'s question. NaN and infinity fail unless the same is expected at that place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from opsmith.problems.constants import compute_changed
from opsmith.problems.draws import Draw, Limits
from opsmith.problems.intermediates import compute_intermediates
from opsmith.problems.problem import OutputTensors, Problem
from opsmith.problems.tolerance import Limit, array_of
from opsmith.records import Diagnostic

if TYPE_CHECKING:
    from opsmith.problems.tolerance import Array

MOVED = 0.01  # of the range of values: how far entries of another order typically lie from their places
SAME = 1e-5  # of that distance: how far the values may differ that stand in another order
NEAR = 0.01  # of the expected values: what a small constant moves at most where it does not rule
LONGEST = 100  # characters of a line of the reference
FEW = 4  # different values, or more, are no accident


@dataclass(frozen=True)
class Wording:
    """A language's own words in findings."""

    outputs: str = "outputs"  # what a program returns
    has_fields: bool = False  # an output of several tensors is one value with fields; else each has a name
    reordered: str = "check the order of axes and of loops"
    differing: str = "check which values are combined, and what is reduced"


PLAIN_WORDING = Wording()

FindHeld = Callable[[int], Set[int] | None]  # the intermediates of a draw, by number, that a program holds, if known


@dataclass(frozen=True)
class Clues:
    """What is known of a trial beside its expected values."""

    draws: Sequence[Draw] = ()
    find_held: FindHeld | None = None  # None: a program has no streams, or they are not there

    def describe_missing(self, draw: int) -> str:
        """The first value of the reference that no stream holds; "": none, or there is but the result."""
        if self.find_held is None:
            return ""
        intermediates = self.draws[draw].remember(compute_intermediates)
        values = intermediates.values
        held = self.find_held(draw) if len(values) > 1 else None
        value = intermediates.find_missing(held) if held is not None else None
        if value is None:
            return ""
        place = f"value {value.number} of {len(values)} of the reference, {value.name} in line {value.line}"
        return f"no stream holds {place}: {value.text[:LONGEST]}"


NO_CLUES = Clues()


class Agreement(NamedTuple):
    """What a comparison showed."""

    errors: tuple[Diagnostic, ...]
    max_abs_error: float | None  # in the outputs' unit; None: there was nothing to compare


def compare_outputs(
    problem: Problem,
    limits: Limits,
    results: Sequence[Sequence[Tensor]],
    label: Callable[[int], str],
    wording: Wording = PLAIN_WORDING,
    clues: Clues = NO_CLUES,
) -> Agreement:
    """Judge the results of one run on several draws, per output and tensor with the draws as first axis.

    `label` names a draw. Findings are those of the first draw that is wrong.
    """
    errors = tuple(_find_form_errors(problem, label(0), limits, results, wording))
    if errors:
        return Agreement(errors, None)
    tensors = [
        _Tensor(output, (place, number), result, limit)
        for place, (output, row, expected) in enumerate(zip(problem.outputs, results, limits, strict=True))
        for number, (result, limit) in enumerate(zip(row, expected, strict=True))
    ]
    worst = reduce(take_larger, (tensor.worst for tensor in tensors), 0.0)
    wrong = [tensor for tensor in tensors if tensor.wrong is not None]
    if not wrong:
        return Agreement((), worst)
    draw = min(tensor.find_wrong_draw() for tensor in wrong)
    errors = tuple(
        tensor.describe_error(draw, label(draw), wording, clues) for tensor in wrong if tensor.is_wrong(draw)
    )
    return Agreement(errors, worst)


class _Tensor:
    """One tensor of one output on all draws: how far it lies from what is expected, and where that is too far."""

    def __init__(self, output: OutputTensors, place: tuple[int, int], result: Tensor, limit: Limit) -> None:
        self.output, self.place, self.result, self.limit = output, place, result, limit
        self.worst = 0.0  # the largest absolute difference
        self.wrong: Array | None = None  # which entries lie outside of the limit; None: none does
        if result.numel() and not (limit.allowed is None and torch.equal(result, limit.expected)):
            self.values = array_of(result)
            with np.errstate(invalid="ignore"):  # inf - inf
                self.difference = np.abs(self.values - limit.expected_array)
            self.worst = float(self.difference.max())
            self._mark_wrong()

    def _mark_wrong(self) -> None:
        if self.limit.allowed_array is None:
            self.wrong = (self.result != self.limit.expected).numpy()
            if self.limit.undecided is not None:
                undecided = self.limit.undecided.numpy()
                self.wrong = wrong if (wrong := self.wrong & ~undecided).any() else None
                self.difference = np.where(undecided, 0.0, self.difference)
                self.worst = float(self.difference.max())
            return
        within = self.difference <= self.limit.allowed_array
        if within.all():
            return
        wrong = ~within & (self.values != self.limit.expected_array)  # equal infinities are right
        if wrong.any():
            self.wrong = wrong
        else:
            self.worst = float(np.nanmax(self.difference, initial=0.0))  # inf - inf where infinity is expected

    def find_wrong_draw(self) -> int:
        """The first draw with a wrong entry."""
        assert self.wrong is not None
        return int(self.wrong.reshape(len(self.wrong), -1).any(1).argmax())

    def is_wrong(self, draw: int) -> bool:
        return self.wrong is not None and bool(self.wrong[draw].any())

    def describe_error(self, draw: int, label: str, wording: Wording, clues: Clues) -> Diagnostic:
        """The DATA finding on one draw: how many entries, the first of them in the tensor's order, and a hint."""
        assert self.wrong is not None
        wrong, allowed = self.wrong[draw], self.limit.allowed_array
        first = tuple(int(place) for place in np.unravel_index(wrong.argmax(), wrong.shape))
        within = "exactly" if allowed is None else f"within {float(allowed[draw][first]):.3g}"
        return Diagnostic(
            "DATA",
            _name_place(self.output, self.place[1], label, wording),
            f"{_write_number(self.result[draw][first])} at index {list(first)}; {int(wrong.sum())} of {wrong.size} "
            f"entries differ, max abs error {float(self.difference[draw].max()):.3g}",
            f"{_write_number(self.limit.expected[draw][first])} {within}",
            next(self._find_hints(draw, label, wording, clues)),
        )

    def _find_hints(self, draw: int, trial: str, wording: Wording, clues: Clues) -> Iterator[str]:
        """What the pattern of wrong entries says: all hints that apply, in the order of how much they say."""
        assert self.wrong is not None
        values, expected, wrong = self.values[draw], self.limit.expected_array[draw], self.wrong[draw]
        if np.isnan(values).any():
            yield "the result holds NaN: look for 0/0, inf - inf or the root of a negative number; check start values"
        if not values.any():
            yield "the result is all zeros: is the accumulated value returned?"
        if _is_constant(values) and not _is_constant(expected):
            yield "every entry of the result is the same"
        is_base = trial.startswith("base ") or (trial.startswith("case ") and " at " not in trial)
        is_near = self.difference[draw].max() <= NEAR * np.abs(expected).max()
        if is_near or not trial.startswith("base "):
            for change in self._find_changes(draw, clues):
                yield f"the reference {change} gives these values: is a constant missing, or at another place?"
        ratio = _find_common_ratio(values, expected)
        if ratio is not None:
            remedy = "is a factor or a division missing or applied twice?"
            yield f"every entry is {ratio:.6g} times the expected one: {remedy}"
        if _is_reordered(values, expected, wrong):
            yield f"these are the right values in another order: {wording.reordered}"
        if " data at " in trial:
            yield "data as declared was right there: which signs, magnitudes or numbers does the program rely on?"
        if not is_base:
            yield "the base shape was right: does the program rely on a size, e.g. a literal where a symbol belongs?"
        if wrong.all():
            missing = clues.describe_missing(draw)
            yield f"every entry differs{f'; {missing}; ' if missing else ': '}{wording.differing}"
        yield "some entries are right: check order, start values and what these positions have in common"

    def _find_changes(self, draw: int, clues: Clues) -> Iterator[str]:
        """How a small constant of the reference may be changed for it to give these values."""
        output, number = self.place
        allowed = self.limit.allowed_array
        if not clues.draws or allowed is None:
            return
        for change, values in clues.draws[draw].remember(compute_changed):
            if bool((np.abs(self.values[draw] - array_of(values[output][number])) <= allowed[draw]).all()):
                yield change


def take_larger(x: float, y: float) -> float:
    """The maximum, where NaN is larger than everything."""
    return x if math.isnan(x) or x > y else y


def _find_form_errors(
    problem: Problem, label: str, limits: Limits, results: Sequence[Sequence[Tensor]], wording: Wording
) -> Iterator[Diagnostic]:
    """OUT findings: number of outputs and tensors, shapes and dtypes."""
    if len(results) != len(limits):
        names = ", ".join(output.name for output in problem.outputs)
        actual = f"{len(results)} {wording.outputs}"
        yield Diagnostic("OUT", f"results, {label}", actual, f"{len(limits)} ({names})")
        return
    for output, row, expected_row in zip(problem.outputs, results, limits, strict=True):
        if len(row) != len(expected_row):
            where = f"output {output.name}, {label}"
            yield Diagnostic("OUT", where, f"{len(row)} fields", f"{len(expected_row)}, those of {output.kind}")
            continue
        for number, (result, limit) in enumerate(zip(row, expected_row, strict=True)):
            if result.shape != limit.expected.shape or result.dtype is not limit.dtype:
                actual = f"a tensor of shape {tuple(result.shape[1:])} and {result.dtype}"
                expected = f"shape {tuple(limit.expected.shape[1:])} and {limit.dtype}"
                yield Diagnostic("OUT", _name_place(output, number, label, wording), actual, expected)


# -- what would help


def _name_place(output: OutputTensors, number: int, trial: str, wording: Wording) -> str:
    field = f"{output.name}, field {number}" if len(output.types) > 1 else output.name
    name = field if wording.has_fields else output.tensor_names[number]
    return f"output {name} ({output.types[number].label}, index outermost first), {trial}"


def _is_constant(array: Array) -> bool:
    return bool((array == array.flat[0]).all())


def _find_common_ratio(values: Array, expected: Array) -> float | None:
    """The factor between the two, where there is one that is not near 1: no factor is forgotten then."""
    if values.size < 2 or not expected.all():
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        ratios = values / expected
        ratio = float(ratios.flat[0])
        same = bool(np.abs(ratios - ratio).max() <= 1e-5 * abs(ratio))  # NaN and infinity are not
    return ratio if same and math.isfinite(ratio) and abs(ratio - 1) > NEAR else None


def _is_reordered(values: Array, expected: Array, wrong: Array) -> bool:
    """Whether the wrong entries hold the values that are expected there, at other places.

    Put in order, the two agree far closer than in place. Nothing is said of values that hardly moved (a tie, a
    rounding), nor where a wrong result may well have the same values: few different ones, or decisions and counts
    of which any two are equal.
    """
    ordered, right = np.sort(values[wrong]), np.sort(expected[wrong])
    with np.errstate(invalid="ignore"):  # inf - inf
        distances, gap = np.abs(values - expected)[wrong], float(np.abs(ordered - right).max())
        if gap > SAME * distances.max():  # which is no less than the median, and cheaper
            return False
        moved = float(np.median(distances))
        spread = float(np.ptp(expected))
        if not 0 < MOVED * spread <= moved < math.inf:
            return False
    distinct = 1 + int((np.diff(right) > SAME * moved).sum())
    needed = right.size if (right == right.round()).all() else FEW
    return gap <= SAME * moved and distinct >= max(FEW, needed)


def _write_number(value: Any) -> str:
    number = value.item()
    return f"{number:.9g}" if isinstance(number, float) else str(number)
