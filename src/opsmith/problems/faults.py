"""Findings against the author of a problem, which leave a candidate unjudged."""

from __future__ import annotations

from opsmith.records import Diagnostic


class TaskFault(Exception):
    """The task's author is at fault (a TASK or FN finding): the candidate stays unjudged."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


class NanFault(TaskFault):
    """The reference gives NaN."""


def make_fault(kind: str, where: str, actual: str, expected: str, remedy: str = "", text: str = "") -> TaskFault:
    """A finding against the task's author; `kind` is TASK or FN."""
    return TaskFault(Diagnostic(kind, where, actual, expected, remedy, text=text))


def is_lack_of_memory(error: BaseException | None) -> bool:
    """Whether the process ran out of memory, which says nothing about the code that asked for it."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))
