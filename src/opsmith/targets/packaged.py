"""What a target adds whose programs can be taken away as a Python package that runs without Opsmith."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from opsmith.records import Task


@dataclass(frozen=True)
class Solved:
    """An operator to be packaged."""

    name: str  # of its function: an identifier in lower case, another one for each operator of a package
    task: Task
    source: str  # a program that passed
    facts: Mapping[str, str]  # where it comes from, in words, for its documentation


@runtime_checkable
class Packaged(Protocol):
    """`requirements` are what the package needs beside Python, as pip knows them."""

    requirements: Sequence[str]

    def package(self, name: str, operators: Sequence[Solved]) -> dict[str, str]:
        """The files of a package `name` by path: `NAME/...`, which defines a function for each operator and imports
        nothing but itself and the requirements, and `tests/...`, which need pytest as well.

        Equal arguments give equal files. Texts of tasks and programs never become code other than what they are as
        functions and references of a task's author.
        """
        ...

    def usage(self, name: str, operators: Sequence[Solved]) -> str:
        """What a reader of the package's README has to know of this language's operators, in Markdown."""
        ...
