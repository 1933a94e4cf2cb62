"""Reference: whether it is a function of its data, bounds a right result closely, and depends on every input.

Of the inputs one tensor at a time is replaced by the one that another draw of the same shape has, hand-made inputs
among them, and everything else is kept: the reference must leave the tolerance of some trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.audit.findings import Finding, State
from opsmith.problems.audit.material import Material, SingleTrial
from opsmith.problems.faults import TaskFault
from opsmith.problems.narrowing import describe_narrowing
from opsmith.problems.precision import own_randomness
from opsmith.problems.reference import compute_expected


def check_reference(material: Material[Any]) -> Finding:
    """Asked twice more with the same inputs, under two other states of torch's generator."""
    tried = "same"
    for trial in material.wide_trials:
        if not _repeats_values(trial):
            reason = (
                f"other values for the same inputs ({trial.name}): it is random, or it keeps something between runs"
            )
            remedy = "compute data_transform from input_data alone; no random numbers, no change of what `global` made"
            return Finding("reference", State.FAULTY, tried, reason, remedy)
    return Finding("reference", State.FINE, tried)


def _repeats_values(trial: SingleTrial[Any]) -> bool:
    for seed in (1, 2):
        with own_randomness(seed):
            again = compute_expected(trial.draw.problem, trial.draw.wide)
        rows = zip(trial.draw.values, again, strict=True)
        if not all(torch.equal(x, y) for first, row in rows for x, y in zip(first, row, strict=True)):
            return False
    return True


def check_tolerance(material: Material[Any]) -> Finding:
    """The widest tolerance of all trials: a wide one hides wrong results."""
    widest = max(material.trials, key=lambda trial: trial.slack)
    slack = widest.slack
    if slack.excess <= 1:
        return Finding("tolerance", State.FINE, f"{slack.part:.0e}" if slack.part else "exact")
    reason = f"a result may lie {slack.part:.2g} times the largest expected value away from it ({widest.name})"
    remedy = "a smaller rtol or atol; without them: `margins` for decisions that rounding flips, data that cancels less"
    return Finding("tolerance", State.FAULTY, "the tolerance of every trial", reason, remedy)


def note_narrowing(names: Iterable[str]) -> Iterator[Finding]:
    """A note on each reference and function that float64 trials cannot judge to the last digit."""
    remedy = "compute in the dtype of the inputs (x.dtype) where every digit shall count"
    yield from (Finding("tolerance", State.NOTE, name, describe_narrowing(name), remedy) for name in names)


def check_inputs(material: Material[Any]) -> Iterator[Finding]:
    """A finding per tensor that a program may ignore, or one that all of them matter."""
    names = [entry.name for entry in material.problem.tensors]
    ignored = [finding for name in names if (finding := _find_ignored(material, name)) is not None]
    yield from ignored
    if not ignored:
        yield Finding("inputs", State.FINE, f"{len(names)} matter")


def _find_ignored(material: Material[Any], name: str) -> Finding | None:
    tried = f"{name} drawn anew, everything else kept"
    pairs = _list_replacements(material, name)
    first = next(pairs, None)
    if first is None:
        reason = f"{name} holds the same numbers in all {len(material.trials)} trials: a program may ignore it"
        return Finding("inputs", State.FAULTY, tried, reason, f"a `data_gen` that draws, or `cases` that change {name}")
    if _changes_output(name, *first) or any(_changes_output(name, *pair) for pair in pairs):
        return None
    reason = f"no output changes in any of {len(material.wide_trials)} draws: a program may ignore {name}"
    return Finding("inputs", State.FAULTY, tried, reason, f"use {name} in a data_transform, or remove it")


def _list_replacements(material: Material[Any], name: str) -> Iterator[tuple[SingleTrial[Any], Tensor]]:
    """Every trial with every other draw's tensor that has the same shape and other numbers."""
    tensors = [(trial, trial.draw.wide.input_data[name]) for trial in material.wide_trials]
    for trial, own in tensors:
        for _, tensor in tensors:
            if tensor.shape == own.shape and not torch.equal(tensor, own):
                yield trial, tensor


def _changes_output(name: str, trial: SingleTrial[Any], tensor: Tensor) -> bool:
    wide = trial.draw.wide
    try:
        values = compute_expected(trial.draw.problem, replace(wide, input_data={**wide.input_data, name: tensor}))
    except TaskFault:  # a mixture of two draws may lie outside of what the reference is made for
        return False
    rows = zip(values, trial.own_limits, strict=True)
    answer = [[value.to(limit.dtype) for value, limit in zip(*row, strict=True)] for row in rows]
    return not trial.accepts_answer(answer)
