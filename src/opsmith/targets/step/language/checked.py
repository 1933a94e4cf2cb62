"""A program that passed the checker, and its graph at any sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from opsmith.targets.step.language.check import Report, check_program
from opsmith.targets.step.language.spec import TaskSpec


@dataclass
class Program:
    """A checked program; where a size shapes its graph (a loop over E, say), other sizes are checked anew."""

    spec: TaskSpec
    source: str
    report: Report
    _latest: tuple[Mapping[str, int], Report] | None = field(default=None, repr=False)  # at other sizes

    def report_at(self, sizes: Mapping[str, int]) -> Report:
        """The report at these sizes."""
        base = self.report.graph
        if base is not None and all(base.sizes.get(name) == sizes.get(name) for name in base.reads):
            return self.report
        if self._latest is None or self._latest[0] != sizes:
            self.remember_report(sizes, check_program(self.spec, self.source, sizes))
        assert self._latest is not None
        return self._latest[1]

    def remember_report(self, sizes: Mapping[str, int], report: Report) -> None:
        """Keep the report at these sizes, until there is another one."""
        self._latest = dict(sizes), report
