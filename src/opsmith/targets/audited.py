"""What a target says about a task file itself: the form of its findings, and the protocol of the targets that can."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from opsmith.records import Boundary, Outcome, Task, Verdict

Judge = Callable[[Task, str], Verdict]

CHECKS = ("data", "reference", "program", "answers", "tolerance", "inputs", "functions")  # in the order of the report


class State(StrEnum):
    """What a check showed, the best first."""

    FINE = "fine"
    NOTE = "note"  # worth knowing, and right
    UNCHECKED = "not checked"
    FAULTY = "faulty"


@dataclass(frozen=True)
class Finding:
    """What one check of a task file showed."""

    check: str  # one of CHECKS; file: it could not be read
    state: State
    tried: str  # what was done, in few words
    found: str = ""  # what passed that should not, or why it could not be checked; "" when fine
    remedy: str = ""


@runtime_checkable
class Audited(Protocol):
    """What a target adds that can judge a task file: whether a wrong answer would pass, and what does not matter."""

    def audit(self, task: Task, source: str | None, judge: Judge) -> Iterable[Finding]:
        """All findings on `task`, whose own program is `source`. Executes code of the task's author."""
        ...


def check_program(task: Task, source: str | None, judge: Judge) -> tuple[Finding, Verdict | None]:
    """Does the file's own program pass as any candidate must?"""
    if source is None:
        remedy = "an `impl`: a program that is known to be right shows that the task can be solved"
        return Finding("program", State.UNCHECKED, "nothing", "the file has no `impl` of its own", remedy), None
    verdict = judge(task, source)
    if verdict.passed:
        return Finding("program", State.FINE, "passes"), verdict
    ours = verdict.outcome is Outcome.UNJUDGED and verdict.charged_to is not Boundary.TASK
    state = State.UNCHECKED if ours else State.FAULTY
    found = f"{verdict.outcome} at {verdict.stage.name}\n{verdict.message}"
    return Finding("program", state, "the file's own `impl`", found, "correct the `impl` or the reference"), verdict
