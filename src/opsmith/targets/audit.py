"""The form of what is found out about a task file itself, and the one check that needs no language."""

from __future__ import annotations

from collections.abc import Callable

from opsmith.problems.audit.findings import SIZES, Finding, State
from opsmith.records import Boundary, Outcome, Task, Verdict

__all__ = ["CHECKS", "SIZES", "Finding", "Judge", "State", "audit_program"]

IMPL = "`impl`"  # where a file's own program lies unless its target says otherwise
Judge = Callable[[Task, str], Verdict]

CHECKS = ("data", "reference", "program", "answers", "tolerance", "inputs", "functions")  # in the order of the report


def audit_program(task: Task, source: str | None, judge: Judge, place: str = IMPL) -> tuple[Finding, Verdict | None]:
    """Does the file's own program pass as any candidate must? `place`: where it lies, or would."""
    if source is None:
        known = "a program that is known to be right shows that the task can be solved"
        remedy = f"{'an ' if place == IMPL else ''}{place}: {known}"
        return Finding("program", State.UNCHECKED, "nothing", f"the file has no {place} of its own", remedy), None
    verdict = judge(task, source)
    if verdict.passed:
        return Finding("program", State.FINE, "passes"), verdict
    ours = verdict.outcome is Outcome.UNJUDGED and verdict.charged_to is not Boundary.TASK
    state = State.UNCHECKED if ours else State.FAULTY
    reason = f"{verdict.outcome} at {verdict.stage.name}\n{verdict.message}"
    return Finding(
        "program", state, f"the file's own {place}", reason, f"correct the {place} or the reference"
    ), verdict
