"""What a target's check and trials give: a program to run, one execution of it, what that showed, and whose fault."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from opsmith.problems.faults import TaskFault, is_lack_of_memory
from opsmith.records import Diagnostic, Scrutiny, Stage

__all__ = ["Checked", "TaskFault", "Trial", "TrialResult", "is_lack_of_memory", "list_runnable"]


@dataclass(frozen=True)
class Checked:
    """A static check's result: a program to run, or the stage that refused it and every finding there.

    Findings of later stages (an affine error beside a type error) are kept in `errors` too; `stage` is the first
    stage that refused, or RUN when nothing did.
    """

    stage: Stage
    program: Any = None  # opaque to everything but the target; None when refused
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """One execution that a candidate must pass: `name` says shape set and precision; `data` is the target's."""

    name: str
    data: Any = field(repr=False, compare=False)
    draws: int = 1  # inputs, each with its seed, that are executed at once

    def left_out(self) -> str:
        """Why no candidate is tried here, in one line: a size of ours at which the author's own code fails. "": it is.

        Decided before any candidate runs. Raises TaskFault when too little is left to try.
        """
        return ""

    def scrutinise(self, scrutiny: Scrutiny) -> Trial:
        """The same execution in surroundings that follow from how hard a program is tried."""
        return self


def list_runnable(trials: Iterable[Trial]) -> list[Trial]:
    """Those that are not left out. Raises TaskFault."""
    return [trial for trial in trials if not trial.left_out()]


@dataclass(frozen=True)
class TrialResult:
    """What one trial showed: no errors and MATCH when the outputs agree, else the stage and the findings."""

    stage: Stage  # RUN or MATCH
    errors: tuple[Diagnostic, ...] = ()
    max_abs_error: float | None = None
    notes: tuple[str, ...] = ()  # what a person should know of how it was judged
    undecided: int = 0  # entries that were not judged, because rounding decides them
