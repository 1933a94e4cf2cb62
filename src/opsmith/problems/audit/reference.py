"""Reference: whether it is a function of its data, and whether it bounds a right result closely."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from opsmith.problems.audit.findings import Finding, State
from opsmith.problems.audit.material import Material, SingleTrial
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
