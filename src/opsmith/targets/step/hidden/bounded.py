"""A check of a program that ends early where the program is long: at other sizes it may be any length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opsmith.targets.step.language.check import Report, Typing, examine_program
from opsmith.targets.step.language.expressions import MAX_APPLICATIONS, MAX_STEPS
from opsmith.targets.step.language.program import Interpreter
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.language.values import LangError, TooLarge


@dataclass(frozen=True)
class Allowance:
    """How long a program may be; at most as long as the language lets it be."""

    steps: int = MAX_STEPS
    applications: int = MAX_APPLICATIONS


WHOLE = Allowance()


@dataclass(frozen=True)
class Extent:
    """The report on a program and how long it was. `is_cut`: a limit of the allowance or of the language struck."""

    report: Report
    is_cut: bool
    steps: int
    applications: int


class Bounded(Interpreter):
    """An interpreter with an allowance."""

    def __init__(self, names: Mapping[str, Any], typing: Typing, allowance: Allowance) -> None:
        steps, applications = MAX_STEPS - allowance.steps, MAX_APPLICATIONS - allowance.applications
        super().__init__(names, typing, steps=steps, applications=applications)
        self.typing, self.spent, self.is_cut = typing, (steps, applications), False

    def _report_error(self, error: LangError, line: int | None) -> None:
        self.is_cut = self.is_cut or isinstance(error, TooLarge)
        super()._report_error(error, line)

    def examine_program(self, source: str) -> Extent:
        report = examine_program(self.typing, self, source)
        return Extent(report, self.is_cut, self.steps - self.spent[0], self.applications - self.spent[1])


def check_bounded(spec: TaskSpec, source: str, sizes: Mapping[str, int], allowance: Allowance) -> Extent:
    """As `check_program`, within an allowance."""
    typing = Typing(spec, sizes)
    return Bounded(typing.list_names(), typing, allowance).examine_program(source)
