"""Whether a program's plan and its kernels agree, as far as their text says it: findings of PARSE at the plan's line.

What a language says of a launch and its kernel is a row: what of the launch is meant, what is given, what is expected,
what to try.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from opsmith.records import Diagnostic, printable
from opsmith.targets.gpu.plan import BoundLaunch, BoundPlan
from opsmith.targets.native.messages import show_line
from opsmith.targets.native.source_checks import KIND, MOST


class Kernel(Protocol):
    """A kernel as it is written."""

    @property
    def name(self) -> str: ...
    @property
    def line(self) -> int: ...  # of its name, from 1
    @property
    def is_template(self) -> bool: ...


Written = TypeVar("Written", bound=Kernel)
Problem = tuple[str, str, str, str]  # `args`, what is given, what is expected, what to try


def list_disagreements(
    plan: BoundPlan,
    kernels: Sequence[Written],
    source: str,
    check_launch: Callable[[BoundLaunch, Written], Iterable[Problem]],
) -> tuple[Diagnostic, ...]:
    """The first findings, each with the text of its line; none: nothing is seen to be wrong."""
    lines = source.split("\n")
    by_name = {kernel.name: kernel for kernel in kernels}
    findings = (
        Diagnostic(KIND, f"launch {launch.kernel}, {what}", printable(given), expected, remedy, launch.line, None, text)
        for launch in plan.launches
        if launch.kernel in by_name
        for text in [show_line(lines, launch.line)]
        for what, given, expected, remedy in check_launch(launch, by_name[launch.kernel])
    )
    return tuple(islice(findings, MOST))


def list_ambiguous(kernels: Iterable[Kernel], template: str = "a template") -> Iterator[Diagnostic]:
    """Kernels that a launch cannot name: two of one name, and templates."""
    lines: dict[str, int] = {}
    for kernel in kernels:
        where = f"kernel {kernel.name}"
        if kernel.name in lines:
            given = f"a second kernel {kernel.name}; the first is on line {lines[kernel.name]}"
            expected = "one kernel of a name, defined where it is declared"
            yield Diagnostic(KIND, where, given, expected, "rename one", kernel.line)
        if kernel.is_template:
            expected, remedy = "a kernel without template arguments", f"write a kernel that calls {template} with its"
            given = f"the template {kernel.name}"
            yield Diagnostic(KIND, where, given, expected, f"{remedy} arguments", kernel.line)
        lines.setdefault(kernel.name, kernel.line)
