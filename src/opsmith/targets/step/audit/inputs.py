"""Does every input and every parameter matter?

One tensor at a time is replaced by the one that another draw of the same shape has, hand-made inputs among them, and
everything else is kept: the reference must leave the tolerance of some trial.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from opsmith.targets import TaskFault, Trial
from opsmith.targets.audited import Finding, State
from opsmith.targets.step.audit.material import Material


def check_inputs(material: Material) -> Iterator[Finding]:
    """A finding per tensor that a program may ignore, or one that all of them matter."""
    names = [entry.name for entry in material.tensors]
    ignored = [finding for name in names if (finding := _ignored(material, name)) is not None]
    yield from ignored
    if not ignored:
        yield Finding("inputs", State.FINE, f"{len(names)} matter")


def _ignored(material: Material, name: str) -> Finding | None:
    tried = f"{name} drawn anew, everything else kept"
    pairs = _replacements(material, name)
    first = next(pairs, None)
    if first is None:
        found = f"{name} holds the same numbers in all {len(material.trials)} trials: a program may ignore it"
        return Finding("inputs", State.FAULTY, tried, found, f"a `data_gen` that draws, or `cases` that change {name}")
    if _changes(material, name, *first) or any(_changes(material, name, *pair) for pair in pairs):
        return None
    found = f"no output changes in any of {len(material.wide)} draws: a program may ignore {name}"
    return Finding("inputs", State.FAULTY, tried, found, f"use {name} in a data_transform, or remove it")


def _replacements(material: Material, name: str) -> Iterator[tuple[Trial, Tensor]]:
    """Every trial with every other draw's tensor that has the same shape and other numbers."""
    drawn = [(trial, material.bindings(trial).input_data[name]) for trial in material.wide]
    for trial, own in drawn:
        for _, other in drawn:
            if other.shape == own.shape and not torch.equal(other, own):
                yield trial, other


def _changes(material: Material, name: str, trial: Trial, tensor: Tensor) -> bool:
    inputs = {**material.bindings(trial).input_data, name: tensor}
    try:
        value = material.reference(trial, inputs)
    except TaskFault:  # a mixture of two draws may lie outside of what the reference is made for
        return False
    return not material.passes(trial, [[field.to(_dtype(field)) for field in row] for row in value])


def _dtype(field: Tensor) -> torch.dtype:
    return torch.float64 if field.is_floating_point() else field.dtype
