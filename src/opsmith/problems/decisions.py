"""Decisions: choices, comparisons and other discrete results of a reference, and whether rounding makes them.

An entry of a discrete output is *undecided* where the reference in float64 and a rounded one differ: right programs may
give either, so it is not judged. No program can be judged on data where an authored margin is narrow, where too many
entries are undecided, or where a continuous output hangs on a decision that the two make otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from opsmith.problems.authored import compile_transform
from opsmith.problems.bindings import Bindings
from opsmith.problems.faults import TaskFault, make_fault
from opsmith.problems.precision import default_dtype, default_of
from opsmith.problems.problem import ArrayType, Problem
from opsmith.problems.reference import clone_names, run_reference, run_texts
from opsmith.problems.tolerance import FACTOR, find_largest, measure_distance

MARGIN = 1e-3  # the least distance of a discrete decision from its boundary
MOST_UNDECIDED = 0.02  # of the entries of a draw's discrete outputs


class Unclear(NamedTuple):
    """Why no program can be judged on some data, in the words of a finding."""

    where: str
    given: str
    remedy: str = "`margins` that keep decisions away from rounding"
    text: str = ""


def is_discrete(type_: ArrayType, value: Tensor) -> bool:
    """Whether a tensor holds decisions: integers, bools, a Multihot, or floats of which some are 0 and all others 1."""
    if _has_discrete_type(type_):
        return True
    ones = value == 1
    return bool((ones | (value == 0)).all()) and bool(ones.any()) and not bool(ones.all())


def _has_discrete_type(type_: ArrayType) -> bool:
    return not type_.is_floating or type_.is_multihot


def find_unclear(
    problem: Problem, declared: Bindings, wide: Bindings, rounded: Bindings | None = None
) -> Unclear | None:
    """Why no program can be judged on this data; None: it can. Raises TaskFault for a margin without distances.

    `rounded` has the numbers in the types that programs compute in; None: in float64 alone.
    """
    narrow = _find_narrow_margin(problem, wide) or _find_narrow_margin(problem, declared)
    if narrow is not None or rounded is None or declared.random_global:  # which draws other numbers in float64
        return narrow
    try:
        return _find_flips(problem, wide, rounded)
    except TaskFault:  # told where the reference is needed
        return None


def _find_narrow_margin(problem: Problem, bindings: Bindings) -> Unclear | None:
    """The first margin text with a distance below MARGIN."""
    if not problem.margins:
        return None
    namespace = clone_names(bindings)
    run_reference(problem, bindings, namespace)
    for number, text in enumerate(problem.margins):
        with default_dtype(default_of(bindings.wide)), torch.no_grad():
            distances = compile_transform(text, f"margins[{number}]").run_text(namespace)
        if not isinstance(distances, (bool, int, float, Tensor)):
            kind = type(distances).__name__
            raise make_fault("TASK", f"margins[{number}]", kind, "a tensor of distances", text=text)
        tensor = torch.as_tensor(distances)
        if tensor.numel() and not bool((tensor >= MARGIN).all()):  # NaN is not either
            remedy = "widen the data or loosen this margin"
            return Unclear("margins", f"NaN or a distance below {MARGIN}", remedy, text.strip())
    return None


# -- what rounding decides


def _find_flips(problem: Problem, wide: Bindings, rounded: Bindings) -> Unclear | None:
    """What the reference decides otherwise where it rounds; None: nothing, or few entries."""
    outputs = [(output, type_) for output in problem.outputs for type_ in output.types]
    values, choices = _watch_reference(problem, rounded)
    if not choices and not any(_has_discrete_type(type_) for _, type_ in outputs):
        return None
    expected, right_choices = _watch_reference(problem, wide)
    if not _have_equal_forms(values, expected):
        return None
    discrete = [is_discrete(type_, value) for (_, type_), value in zip(outputs, expected, strict=True)]
    flips = [
        value != right
        for (output, _), value, right, is_exact in zip(outputs, values, expected, discrete, strict=True)
        if is_exact and output.rtol is None and output.atol is None
    ]
    undecided, entries = sum(int(flip.sum()) for flip in flips), sum(flip.numel() for flip in flips)
    if undecided > MOST_UNDECIDED * entries:
        return Unclear("outputs", f"{undecided} of {entries} discrete entries that rounding decides")
    if _have_equal_forms(choices, right_choices) and not any(
        bool((own != right).any()) for own, right in zip(choices, right_choices, strict=True)
    ):
        return None
    corrected, _ = _watch_reference(problem, rounded, right_choices)
    for (output, _), is_exact, *runs in zip(outputs, discrete, values, corrected, expected, strict=True):
        if not is_exact and all(value.is_floating_point() for value in runs) and _hangs_on_choices(*runs):
            return Unclear(f"output {output.name}", "values that hang on a decision which rounding makes")
    return None


def _have_equal_forms(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether both hold strided tensors of the same shapes."""
    is_strided = all(isinstance(value, Tensor) and value.layout is torch.strided for value in (*first, *second))
    return is_strided and [value.shape for value in first] == [value.shape for value in second]


def _hangs_on_choices(rounded: Tensor, corrected: Tensor, expected: Tensor) -> bool:
    """Whether a rounded result lies far closer to what is expected once the decisions of float64 replace its own."""
    ulps = 2 * torch.finfo(rounded.dtype).eps * find_largest(expected)
    return measure_distance(rounded, expected) > FACTOR * max(measure_distance(corrected, expected), ulps)


def _watch_reference(
    problem: Problem, bindings: Bindings, choices: Sequence[Tensor] = ()
) -> tuple[list[Any], list[Tensor]]:
    """The values of all outputs, and the decisions behind them; those of `choices` replace the reference's own."""
    with default_dtype(default_of(bindings.wide)), torch.no_grad(), _Watch(choices) as watch:
        return run_texts(problem, clone_names(bindings)), watch.choices


class _Watch(TorchFunctionMode):
    """Notes the decisions: what calls of torch make of floats that is no float. `replacing`: what they give instead."""

    def __init__(self, replacing: Iterable[Tensor]) -> None:
        super().__init__()
        self.choices: list[Tensor] = []
        self._replacing = iter(replacing)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not any(isinstance(value, Tensor) and value.is_floating_point() for value in (*args, *kwargs.values())):
            return result
        if isinstance(result, Tensor):
            return self._note_choice(result)
        if isinstance(result, tuple) and any(isinstance(value, Tensor) for value in result):
            return type(result)(map(self._note_choice, result))
        return result

    def _note_choice(self, value: Any) -> Any:
        if not isinstance(value, Tensor) or value.is_floating_point() or value.is_complex():
            return value
        self.choices.append(value)
        replaced = next(self._replacing, value)
        return replaced if replaced.shape == value.shape else value
