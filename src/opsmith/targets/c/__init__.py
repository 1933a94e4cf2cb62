"""C: what is refused before any compiler sees a program, and its canonical form."""

from __future__ import annotations

from opsmith.targets.native.adaptation import NativeTasks


class CTarget(NativeTasks):
    """C."""

    name = "c"
    suffix = ".c"


C = CTarget()
