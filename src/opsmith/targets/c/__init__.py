"""C: what is refused before any compiler sees a program, and its canonical form."""

from __future__ import annotations

from opsmith.targets.c.packages import CPackages
from opsmith.targets.native.adaptation import NativeTasks


class CTarget(NativeTasks, CPackages):
    """C."""

    name = "c"
    suffix = ".c"


C = CTarget()
