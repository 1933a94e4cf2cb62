"""Inputs: whether every input and every parameter matters.

One tensor at a time is replaced by the one that another draw of the same shape has, hand-made inputs among them, and
everything else is kept: the reference must leave the tolerance of some trial.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.audit.findings import Finding, State
from opsmith.problems.audit.material import Material, SingleTrial
from opsmith.problems.faults import TaskFault
from opsmith.problems.reference import compute_expected


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
