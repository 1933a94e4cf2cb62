"""Trials at sizes that no file states, the hidden sizes, and what a model may be told of a failure there.

They are drawn from the problem and a secret (`records.Scrutiny`), never from a candidate's text, so that nobody can
draw again by writing it otherwise. A failure there tells a model that the program is wrong at sizes not shown, and
nothing that would help to write for those sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from opsmith.records import Diagnostic
from opsmith.targets.trial import Trial

NOT_SHOWN = "sizes not shown"
DATA_NOT_SHOWN = "data not shown"
OTHER_DATA = "other data"  # what the names of trials begin with whose data is not as the task draws it


@dataclass
class HiddenTrials:
    """Trials that a candidate must pass beside those of its task. Each is prepared when it is asked for."""

    trials: Iterator[Trial] = field(default_factory=lambda: iter(()))
    warnings: list[str] = field(default_factory=list)  # what could not be tried, and why; whole after the last trial


def veil_findings(errors: Sequence[Diagnostic], trial: str) -> tuple[Diagnostic, ...]:
    """The findings of a hidden trial of that name without sizes, shapes, places and values."""
    return tuple(dict.fromkeys(_veil_finding(error, trial.startswith(OTHER_DATA)) for error in errors))


def _veil_finding(error: Diagnostic, is_data: bool) -> Diagnostic:
    description = "other values than the reference's" if error.kind == "DATA" else "a program that breaks a rule there"
    if is_data:
        expected = "the operator on all data that its inputs may hold; data drawn as the task says was right"
        remedy = "take nothing for granted of numbers: zeros, equal, sorted, very large and very small ones occur"
        return replace(error, where=DATA_NOT_SHOWN, given=description, expected=expected, remedy=remedy)
    expected = "the operator at every size; the sizes that the task states were right"
    remedy = "no loop, list or number may depend on a size unless the operator does"
    return replace(error, where=NOT_SHOWN, given=description, expected=expected, remedy=remedy)


def veil_lines(errors: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The findings without lines: a program that runs as itself may choose by size where it fails."""
    return tuple(dict.fromkeys(replace(error, line=None, column=None, text="") for error in errors))
