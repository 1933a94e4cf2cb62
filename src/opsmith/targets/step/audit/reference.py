"""Can the data of every trial be made, is the reference a function of it, and does it bound a right result closely?"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from opsmith.targets import TaskFault, Trial
from opsmith.targets.audited import Finding, State
from opsmith.targets.step.audit.material import Material
from opsmith.targets.step.execution.precision import own_randomness

SHOWN = 3  # faults of one task file that are worth reading at once


def check_data(material: Material) -> Finding:
    """Inputs, margins, properties of hand-made inputs, and the form of the reference, at every trial."""
    faults = _faults(material)
    tried = f"{len(material.trials)} trials"
    if not faults:
        return Finding("data", State.FINE, tried)
    found = "\n".join(f"{name}:\n{text}" for text, name in faults.items())
    return Finding("data", State.FAULTY, tried, found, "correct this key of the task file")


def _faults(material: Material) -> dict[str, str]:
    """The first faults, each once: text -> trial."""
    faults: dict[str, str] = {}
    for trial in material.trials:
        try:
            material.expected(trial)
        except TaskFault as fault:
            faults.setdefault(fault.diagnostic.block(), trial.name)
        if len(faults) == SHOWN:
            break
    return faults


def check_reference(material: Material) -> Iterator[Finding]:
    """Asked twice more with the same inputs, under two other states of torch's generator."""
    tried = "same"
    for trial in material.wide:
        if not _agrees(material, trial):
            found = f"other values for the same inputs ({trial.name}): it is random, or it keeps something between runs"
            remedy = "compute data_transform from input_data alone; no random numbers, no change of what `global` made"
            yield Finding("reference", State.FAULTY, tried, found, remedy)
            return
    yield Finding("reference", State.FINE, tried)


def _agrees(material: Material, trial: Trial) -> bool:
    inputs = material.bindings(trial).input_data
    for seed in (1, 2):
        with own_randomness(seed):
            again = material.reference(trial, inputs)
        rows = zip(material.expected(trial), again, strict=True)
        if not all(torch.equal(x, y.to(x.dtype)) for first, row in rows for x, y in zip(first, row, strict=True)):
            return False
    return True


def check_tolerance(material: Material) -> Finding:
    """The widest tolerance of all trials: a wide one hides wrong results."""
    widest = max(material.trials, key=material.slack)
    slack = material.slack(widest)
    if slack.excess <= 1:
        return Finding("tolerance", State.FINE, f"{slack.part:.0e}" if slack.part else "exact")
    found = f"a result may lie {slack.part:.2g} times the largest expected value away from it ({widest.name})"
    remedy = "a smaller rtol or atol; without them: `margins` for decisions that rounding flips, data that cancels less"
    return Finding("tolerance", State.FAULTY, "the tolerance of every trial", found, remedy)
