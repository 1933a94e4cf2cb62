"""Where a NaN of the reference comes from: inputs are changed, one at a time, until it is gone.

The first change that helps says what it was about an input: infinite numbers, zeros, negative ones, large ones, or its
values as they are. Where no change of any input helps, it is the sizes, or the reference itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.audit.material import SingleTrial
from opsmith.problems.bindings import Bindings
from opsmith.problems.drawing import draw_data, make_seed
from opsmith.problems.faults import NanFault, TaskFault
from opsmith.problems.problem import Problem
from opsmith.problems.reference import compute_expected


@dataclass(frozen=True)
class NanCause:
    """What makes a NaN, and what an author can do about it."""

    reason: str
    remedy: str


@dataclass(frozen=True)
class _Change:
    """A change of a tensor, and what its entries are called that it takes away."""

    what: str
    is_met: Callable[[Tensor], bool]
    change: Callable[[Tensor], Tensor]
    remedy: str  # what may be done about the inputs


def _has_inf(x: Tensor) -> bool:
    return x.is_floating_point() and bool(x.isinf().any())


def _is_large(x: Tensor) -> bool:
    return x.is_floating_point() and bool(x.abs().amax() > 1)


CHANGES = (
    _Change("infinite numbers", _has_inf, lambda x: torch.where(x.isinf(), x.sign(), x), "finite numbers for {}"),
    _Change(
        "zeros", lambda x: bool((x == 0).any()), lambda x: torch.where(x == 0, torch.ones_like(x), x), "no 0 in {}"
    ),
    _Change(
        "negative numbers",
        lambda x: x.dtype is not torch.bool and bool((x < 0).any()),
        lambda x: x.abs(),
        "numbers from 0 on for {}, such as `data_gen: torch.rand`, or `min: 0` of randint",
    ),
    _Change("large numbers", _is_large, lambda x: x / x.abs().amax(), "smaller numbers for {}"),
    _Change("the values", lambda x: True, torch.ones_like, "other data for {}"),
)


def find_nan_cause(trial: SingleTrial[Any], fault: NanFault) -> NanCause:
    """Why the reference gave NaN on the draw of a trial."""
    draw, bindings = trial.draw, _bind_inputs(trial)
    place = f" in `cases[{draw.seed}]`" if draw.is_case else ""
    holding = _join_names([name for name, tensor in bindings.input_data.items() if bool(tensor.isnan().any())])
    if holding:
        return NanCause(f"{holding} holds NaN itself", f"numbers for {holding}{place}")
    search = _Search(draw.problem, bindings, fault)
    if not search.keeps_nan(CHANGES[-1], []):
        return NanCause("an input lies where a rounding error makes it NaN", f"data that lies further off{place}")
    return search.find_change(place) or _blame_sizes(draw.problem, bindings)


@dataclass(frozen=True)
class _Search:
    """Changes of the inputs of one draw, until a NaN of its reference is gone."""

    problem: Problem
    bindings: Bindings
    fault: NanFault

    def find_change(self, place: str) -> NanCause | None:
        """The first change of one input, or of all that it concerns, that takes the NaN away."""
        tensors = self.bindings.input_data
        for change in CHANGES:
            names = [name for name, tensor in tensors.items() if tensor.numel() and change.is_met(tensor)]
            helpful = [name for name in names if not self.keeps_nan(change, [name])]
            if helpful:
                return _blame_change(change, _join_names(helpful), place)
            if len(names) > 1 and not self.keeps_nan(change, names):
                return _blame_change(change, " and ".join(names), place)
        return None

    def keeps_nan(self, change: _Change, names: Sequence[str]) -> bool:
        """Whether the same output still has NaN, or nothing can be said, with these tensors changed."""
        changed = {name: change.change(self.bindings.input_data[name]) for name in names}
        inputs = {**self.bindings.input_data, **changed}
        try:
            compute_expected(self.problem, replace(self.bindings, input_data=inputs))
        except NanFault as fault:
            return fault.diagnostic.where == self.fault.diagnostic.where
        except TaskFault:
            return True
        return False


def _blame_change(change: _Change, names: str, place: str) -> NanCause:
    reason = f"it comes from {change.what} {'of' if change is CHANGES[-1] else 'in'} {names}; without them it is gone"
    remedy = f"other numbers for {names}{place}" if place else change.remedy.format(names)
    return NanCause(reason, f"{remedy}; or a reference that gives numbers there")


def _blame_sizes(problem: Problem, bindings: Bindings) -> NanCause:
    names = sorted(problem.symbols & bindings.sizes.keys())
    sizes = ", ".join(f"{name} = {bindings.sizes[name]}" for name in names)
    remedy = "look in the data_transform for 0/0, inf - inf, or the variance of one element"
    return NanCause(
        f"no change of an input takes it away: it comes from the sizes ({sizes}) or the text itself", remedy
    )


def _join_names(names: Sequence[str]) -> str:
    return " or ".join(names)


def _bind_inputs(trial: SingleTrial[Any]) -> Bindings:
    """The data of the trial's draw; of one that was given up because of the NaN, its first attempt."""
    try:
        return trial.data
    except TaskFault:
        draw = trial.draw
        return draw_data(draw.problem, draw.overrides, make_seed(draw.seed_text))
