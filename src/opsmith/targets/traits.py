"""What does a task's own program need of its language? The protocol of the targets that can tell (paper, table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from opsmith.records import Task


@dataclass(frozen=True)
class Traits:
    """Two properties of a right program, by which results are told apart."""

    shapes: bool  # it manipulates shapes, beyond computing
    reuses: bool  # it uses something more than once that the language lets be used once

    @property
    def name(self) -> str:
        """`Arith-Once`, `Arith-Reuse`, `Shape-Once` or `Shape-Reuse`, as the paper calls them."""
        return f"{'Shape' if self.shapes else 'Arith'}-{'Reuse' if self.reuses else 'Once'}"


@runtime_checkable
class Classified(Protocol):
    """What a target adds that can tell the kinds of programs apart."""

    def traits(self, task: Task, source: str) -> Traits | None:
        """The traits of a program for `task`; None when it is no right program of the language."""
        ...
