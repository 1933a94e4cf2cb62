"""What a target adds whose tasks can be shown as plain code of its host language, without structural IR."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from opsmith.records import Task


@runtime_checkable
class Bare(Protocol):
    """The texts of a bare prompt, all made from the same sources as those of the structural one."""

    bare_reply: str  # what a reply should be, in words: for the message about one that holds no program

    def bare_prompt(self) -> str:
        """The static base prompt; its examples are fenced `bare_task` texts."""
        ...

    def bare_task(self, task: Task, source: str | None) -> str:
        """A task as code with this program in it; None: with the place that is left for it."""
        ...

    def bare_answer(self, task: Task, source: str) -> str:
        """A program as a reply to a bare prompt would give it; `read_program` takes it."""
        ...

    def read_bare(self, text: str) -> tuple[str, str | None] | None:
        """The inverse of `bare_task`, from the text alone: a task text as prompts show it, and its program or None.

        None: the text is nothing that `bare_task` wrote. Never executes anything.
        """
        ...
