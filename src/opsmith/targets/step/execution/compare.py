"""Comparison: are a program's outputs the expected ones, and if not, what would help the next attempt?

Everything is compared: the number of outputs, each field's tensor shape and dtype, each entry. How far an entry may lie
from the expected one is `tolerance`'s question. NaN and infinity fail unless the same is expected at that place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from opsmith.records import Diagnostic, Stage
from opsmith.targets.step.execution.tolerance import Limit, array_of
from opsmith.targets.step.execution.trials import Case
from opsmith.targets.step.language.spec import OutputSpec, TaskSpec
from opsmith.targets.step.language.types import Field, fields_of
from opsmith.targets.trial import TrialResult

if TYPE_CHECKING:
    from opsmith.targets.step.execution.tolerance import Array


def compare(spec: TaskSpec, case: Case, results: Sequence[Sequence[Tensor]]) -> TrialResult:
    """Judge the results, per output and field with the draws as first axis, of one run on all draws of `case`.

    Findings are those of the first draw that is wrong. Raises TaskFault when the reference fails.
    """
    limits = case.limits
    errors = list(_form_errors(spec, case.label(0), limits, results))
    if errors:
        return TrialResult(Stage.MATCH, tuple(errors))
    fields = [
        _Field(output, at, result, limit)
        for output, row, wanted in zip(spec.outputs, results, limits, strict=True)
        for at, (result, limit) in enumerate(zip(row, wanted, strict=True))
    ]
    worst = reduce(larger, (field.worst for field in fields), 0.0)
    wrong = [field for field in fields if field.wrong is not None]
    if not wrong:
        return TrialResult(Stage.MATCH, (), worst)
    draw = min(field.first_wrong_draw() for field in wrong)
    errors = [field.error(draw, case.label(draw)) for field in wrong if field.is_wrong(draw)]
    return TrialResult(Stage.MATCH, tuple(errors), worst)


class _Field:
    """One field of one output on all draws: how far it lies from the expected values, and where that is too far."""

    def __init__(self, output: OutputSpec, at: int, result: Tensor, limit: Limit) -> None:
        self.output, self.at, self.result, self.limit = output, at, result, limit
        self.worst = 0.0  # the largest absolute difference
        self.wrong: Array | None = None  # which entries lie outside of the limit; None: none does
        if result.numel() and not (limit.allowed is None and torch.equal(result, limit.expected)):
            self.given = array_of(result)
            with np.errstate(invalid="ignore"):  # inf - inf
                self.difference = np.abs(self.given - limit.expected_array)
            self.worst = float(self.difference.max())
            self._judge()

    def _judge(self) -> None:
        if self.limit.allowed_array is None:
            self.wrong = (self.result != self.limit.expected).numpy()
            return
        within = self.difference <= self.limit.allowed_array
        if within.all():
            return
        wrong = ~within & (self.given != self.limit.expected_array)  # equal infinities are right
        if wrong.any():
            self.wrong = wrong
        else:
            self.worst = float(np.nanmax(self.difference, initial=0.0))  # inf - inf where infinity is expected

    def first_wrong_draw(self) -> int:
        assert self.wrong is not None
        return int(self.wrong.reshape(len(self.wrong), -1).any(1).argmax())

    def is_wrong(self, draw: int) -> bool:
        return self.wrong is not None and bool(self.wrong[draw].any())

    def error(self, draw: int, label: str) -> Diagnostic:
        """The DATA finding on one draw: how many entries, the first of them in stream order, and a hint."""
        assert self.wrong is not None
        wrong, allowed = self.wrong[draw], self.limit.allowed_array
        first = tuple(int(place) for place in np.unravel_index(wrong.argmax(), wrong.shape))
        within = "exactly" if allowed is None else f"within {float(allowed[draw][first]):.3g}"
        return Diagnostic(
            "DATA",
            _place(self.output, self.at, label),
            f"{_number(self.result[draw][first])} at index {list(first)}; {int(wrong.sum())} of {wrong.size} entries "
            f"differ, max abs error {float(self.difference[draw].max()):.3g}",
            f"{_number(self.limit.expected[draw][first])} {within}",
            _hint(self.given[draw], self.limit.expected_array[draw], wrong, label),
        )


def larger(x: float, y: float) -> float:
    """The maximum, where NaN is larger than everything."""
    return x if math.isnan(x) or x > y else y


def _form_errors(
    spec: TaskSpec, label: str, limits: Sequence[Sequence[Limit]], results: Sequence[Sequence[Tensor]]
) -> Iterator[Diagnostic]:
    """OUT findings: number of outputs and fields, shapes and dtypes."""
    if len(results) != len(limits):
        wanted = ", ".join(output.name for output in spec.outputs)
        yield Diagnostic("OUT", f"results, {label}", f"{len(results)} streams", f"{len(limits)} ({wanted})")
        return
    for output, row, wanted_row in zip(spec.outputs, results, limits, strict=True):
        if len(row) != len(wanted_row):
            where = f"output {output.name}, {label}"
            yield Diagnostic("OUT", where, f"{len(row)} fields", f"{len(wanted_row)}, those of {output.dtype}")
            continue
        for at, (result, limit) in enumerate(zip(row, wanted_row, strict=True)):
            if result.shape != limit.expected.shape or result.dtype is not limit.dtype:
                given = f"a tensor of shape {tuple(result.shape[1:])} and {result.dtype}"
                expected = f"shape {tuple(limit.expected.shape[1:])} and {limit.dtype}"
                yield Diagnostic("OUT", _place(output, at, label), given, expected)


# -- what a wrong result is told


def _place(output: OutputSpec, at: int, trial: str) -> str:
    fields = fields_of(output.dtype)
    field = f", field {at}" if len(fields) > 1 else ""
    return f"output {output.name}{field} ({_layout(output, fields[at])}), {trial}"


def _layout(output: OutputSpec, field: Field) -> str:
    return f"{field} [{', '.join(map(str, output.dims))}], index outermost first"


def _hint(given: Array, expected: Array, wrong: Array, trial: str) -> str:
    """What the pattern of wrong entries says: the first hint that applies."""
    return next(_hints(given, expected, wrong, trial))


def _hints(given: Array, expected: Array, wrong: Array, trial: str) -> Iterator[str]:
    """All hints that apply, in the order of how much they say."""
    if np.isnan(given).any():
        yield "the result holds NaN: look for 0/0, inf - inf or the root of a negative number; check start values"
    if not given.any():
        yield "the result is all zeros: is the accumulated value returned?"
    if _constant(given) and not _constant(expected):
        yield "every entry of the result is the same"
    ratio = _common_ratio(given, expected)
    if ratio is not None:
        yield f"every entry is {ratio:.6g} times the expected one: is a factor or a division missing or applied twice?"
    if _same_values(given, expected):
        yield "these are the right values in another order: check Flatten, Reshape, Bufferize and the order of dims"
    if not trial.startswith("base ") and (not trial.startswith("case ") or " at " in trial):
        yield "the base shape was right: does the program rely on a size, e.g. a literal where a symbol belongs?"
    if wrong.all():
        yield "every entry differs: check which streams and functions are combined, and what is reduced"
    yield "some entries are right: check order, start values and what these positions have in common"


def _constant(array: Array) -> bool:
    return bool((array == array.flat[0]).all())


def _common_ratio(given: Array, expected: Array) -> float | None:
    """The factor between the two, where there is one other than 1."""
    if given.size < 2 or not expected.all():
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        ratios = given / expected
        ratio = float(ratios.flat[0])
        same = bool(np.abs(ratios - ratio).max() <= 1e-5 * abs(ratio))  # NaN and infinity are not
    return ratio if same and math.isfinite(ratio) and abs(ratio - 1) > 1e-5 else None


def _same_values(given: Array, expected: Array) -> bool:
    if given.size < 2:
        return False
    ordered, wanted = np.sort(given, axis=None), np.sort(expected, axis=None)
    with np.errstate(invalid="ignore"):
        gap = np.abs(ordered - wanted)
    return bool((np.where(ordered == wanted, 0.0, gap) <= 1e-5 * np.abs(wanted) + 1e-8).all())


def _number(value: Any) -> str:
    number = value.item()
    return f"{number:.9g}" if isinstance(number, float) else str(number)
