"""C: one translation unit that defines the function of a problem, compiled by gcc and called as machine code."""

from __future__ import annotations

from opsmith.records import Diagnostic, Task
from opsmith.targets.c.canonical import write_canonical
from opsmith.targets.c.packages import CPackages
from opsmith.targets.c.source import check_source, defines_kernel
from opsmith.targets.native.adaptation import NativeTasks
from opsmith.targets.native.programs import NativePrograms

VERIFIER = "c-1"  # raise it whenever a verdict can change: trials, limits, passes, rules


class CTarget(NativeTasks, NativePrograms, CPackages):
    """C behind the `Target` protocol."""

    name = "c"
    suffix = ".c"
    verifier = VERIFIER

    def read_program(self, task: Task, text: str) -> str | None:
        return text.strip("\n") + "\n" if defines_kernel(text) else None

    def check_source(self, source: str) -> tuple[Diagnostic, ...]:
        return check_source(source)

    def canonical_form(self, source: str) -> str:
        return write_canonical(source)


C = CTarget()
