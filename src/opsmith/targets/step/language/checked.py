"""A program that passed the checker, and its graph at any sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opsmith.targets.step.language.check import Report, check_program
from opsmith.targets.step.language.spec import TaskSpec


@dataclass
class Program:
    """A checked program; where a size shapes its graph (a loop over E, say), other sizes are checked anew."""

    spec: TaskSpec
    source: str
    report: Report

    def at(self, sizes: Mapping[str, int]) -> Report:
        """The report at these sizes."""
        base = self.report.graph
        if base is not None and all(base.sizes.get(name) == sizes.get(name) for name in base.reads):
            return self.report
        return check_program(self.spec, self.source, sizes)
